"""The sections that explain: where they stand, what they show first, what they leave out, and that they stay light."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from tests.reports import invented as load

from bottleneck_doctor.documents.report import (
    CallNode,
    DeviceProfile,
    Event,
    GarbageCollection,
    LineCost,
    LineListing,
    LineProfile,
    Operator,
    Profiles,
    Result,
    Speedup,
    Timeline,
    WindowUse,
)
from bottleneck_doctor.render import html, thinning
from bottleneck_doctor.render.embedded import embedded_data
from bottleneck_doctor.wording import ranking


def section(text: str, name: str) -> str:
    start = text.index(f'<section id="{name}"')
    return text[start : text.index("</section>", start)]


def words_of(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", markup).replace("\u00a0", " "))


def outside_details(markup: str) -> str:
    return re.sub("<details.*?</details>", "", markup, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("pets", "why fixes together step loading workers machine code device method"),
        ("gpu", "why fixes step machine code device method"),
    ],
)
def test_sections_are_in_the_order_of_a_readers_questions(name: str, order: str) -> None:
    text = html.render(load(name))
    assert " ".join(re.findall(r'<section id="([^"]+)"', text)) == order
    assert text.index("things to know") < text.index('id="why"') if name == "pets" else True
    linked = set(re.findall(r'<li><a href="#([^"]+)">', text[: text.index("<main")]))
    assert linked <= set(order.split())


def test_three_findings_are_open_and_the_rest_is_folded() -> None:
    why = section(html.render(load("pets")), "why")
    shown = re.findall(r'id="(finding-[^"]+?)" aria', outside_details(why))
    assert shown == ["finding-input-bound", "finding-slow-decode", "finding-slow-transform"]
    assert re.findall(r'id="(finding-[^"]+?)" aria', why)[3:] == ["finding-slow-epoch-turn", "finding-step-jitter"]
    assert "<details open" not in why


def test_the_cause_its_line_and_its_worth_stand_beside_the_change() -> None:
    text = html.render(load("pets"))
    first = words_of(text[: text.index('id="why"')])
    assert "Why: A step takes 2.67 s, and 1.95 s of it pass before its batch is there. See train.py:58" in first
    finding = words_of(section(text, "why"))
    assert "73 % of the time" in finding
    assert "train.py, line 58 for images, labels in loader:" in finding


def test_what_a_finding_is_worth_at_most_stands_below_its_share() -> None:
    result = load("pets")
    promised = ranking.best_measured(result)
    assert promised is not None
    best = promised.speedup
    first = replace(result.findings[0], at_most=2 * best.estimate)
    text = words_of(section(html.render(replace(result, findings=[first])), "why"))
    assert f"of the time worth at most {2 * best.estimate:.1f}×" in text
    assert "if this took no time" in text
    # What was measured brings more, so it spares other time as well.
    less = replace(first, at_most=best.estimate - 0.1)
    assert "at most" not in words_of(section(html.render(replace(result, findings=[less])), "why"))


def test_where_nothing_is_promised_the_advice_is_told_with_its_worth() -> None:
    result = load("undecided")
    first = replace(load("pets").findings[0], sentence="The optimizer takes 80 %.", advice="Fuse it.", at_most=5.0)
    text = words_of(html.render(replace(result, findings=[first])))
    assert "What to do: Fuse it. If this took no time, training would be 5.0× as fast." in text


def test_advice_stands_beside_a_promise_that_does_nothing_about_what_is_worth_more() -> None:
    result = load("pets")
    best = ranking.best_measured(result)
    assert best is not None
    first = replace(result.findings[0], advice="Fuse it.", fixes=[], at_most=2 * best.speedup.estimate)
    assert "What to do: Fuse it. If this took no time" in words_of(html.render(replace(result, findings=[first])))
    promised = [fix.id for fix in result.fixes if fix.id == result.verdict.fix]
    for other in (replace(first, fixes=promised), replace(first, at_most=None), replace(first, advice="")):
        assert "What to do:" not in words_of(html.render(replace(result, findings=[other])))


def test_a_finding_that_repeats_the_verdict_is_not_its_reason() -> None:
    result = load("pets")
    echo = replace(result.findings[0], sentence="Training waits for data 73 % of the time, 1.95 s of every step.")
    text = html.render(replace(result, findings=[echo, *result.findings[1:]]))
    assert "<strong>Why:</strong> <code>PIL.ImageFile.load</code> takes 41.2" in text
    assert "Why:" not in html.render(replace(result, findings=[echo]))
    assert echo.sentence.replace(" %", "\u00a0%") in section(html.render(replace(result, findings=[echo])), "why")


def test_findings_and_fixes_point_at_each_other() -> None:
    text = html.render(load("pets"))
    why = section(text, "why")
    assert '<a href="#fix-persistent-workers">Keep workers between epochs</a>' in why
    assert "3.4× faster" in why
    assert "gone" not in words_of(why), "a fix that is not in the report is not linked"
    card = text[text.index('id="fix-workers"') : text.index("</article>", text.index('id="fix-workers"'))]
    assert re.findall(r'href="#(finding-[^"]+)"', card) == ["finding-input-bound", "finding-slow-decode"]


def test_what_is_on_already_stands_with_its_worth() -> None:
    report = load("pets")
    on = next(fix for fix in report.fixes if fix.status == "not_applicable")
    worth = Speedup(estimate=1.8, low=1.6, high=2.0, pairs=6, sessions=3)
    told = replace(report, fixes=[replace(fix, worth=worth) if fix is on else fix for fix in report.fixes])
    assert f"{on.reason}. It is worth 1.80× (1.60–2.00), measured by taking it back." in words_of(html.render(told))


def test_a_finding_of_an_older_release_is_named_by_its_id() -> None:
    result = load("pets")
    old = [replace(result.findings[0], title="", share=None, site=None, advice="")]
    why = section(html.render(replace(result, findings=old)), "why")
    assert ">Input bound <" in why
    assert "of the time</p>" not in why


def test_phases_add_up_to_the_step_and_a_single_process_does_not_communicate() -> None:
    result = load("pets")
    assert "Communication" not in section(html.render(result), "step")
    assert "Communication between processes" in section(html.render(load("gpu")), "step")
    rows = re.findall(r"</svg>[^<]+</th><td class=\"number\">([\d.]+)", section(html.render(result), "step"))
    assert sum(map(float, rows)) == pytest.approx(100, abs=0.5)


def test_step_shows_regularity_pause_and_each_workers_batches() -> None:
    step = words_of(section(html.render(load("pets")), "step"))
    assert "1.25× the median" in step
    assert "Between two epochs: 21 s" in step
    assert "worker 3" in step


def test_loading_compares_settings_on_one_scale() -> None:
    loading = section(html.render(load("pets")), "loading")
    one, best = (
        float(width) for width in re.findall(r'width="([\d.]+)" height="20" class="phase load-fetch"', loading)
    )
    assert one / best == pytest.approx(1938 / 2571, rel=0.01)
    assert "on a local disk (ext4)" in words_of(loading)
    assert "Batches are made in the main process, and training stands still meanwhile." in words_of(loading)
    assert "ColorJitter made at data.py:18" in words_of(loading)


def test_a_library_s_collate_function_is_not_called_torch_s() -> None:
    result = load("pets")
    own = result.loading[0]
    shown = words_of(section(html.render(result), "loading"))
    assert "PyTorch’s own" in shown
    library = replace(own, collate_name="Collater", collate_module="torch_geometric.loader.dataloader", fetch_site=None)
    shown = words_of(section(html.render(replace(result, loading=[library])), "loading"))
    assert "Collater of torch_geometric" in shown
    assert "none of yours" in shown
    assert "PyTorch’s own" not in shown


def test_machine_shows_means_of_the_best_setting_that_was_watched() -> None:
    machine = words_of(section(html.render(load("pets")), "machine"))
    assert "Best is num_workers=4, persistent_workers=True ." in machine, "what the verdict promises"
    assert re.search(r"CPU, workers – 2\.\d+ cores", machine), "as written there are no workers"
    assert "PCIe" not in machine


def test_memory_that_processes_share_is_counted_in_one_way_on_both_sides() -> None:
    whole = load("pets")
    assert whole.utilization is not None
    # 59.6 GiB is what each worker holds by itself, with all that it shares.
    uses = [
        replace(use, processes=[replace(each, rss_bytes=64e9) for each in use.processes])
        for use in whole.utilization.windows
    ]

    def shown(uses: list[WindowUse]) -> str:
        assert whole.utilization is not None
        result = replace(whole, utilization=replace(whole.utilization, windows=uses))
        return words_of(section(html.render(result), "machine"))

    assert re.search(r"Memory, main process 1\.3 GiB 1\.3 GiB", shown(uses))
    half = [replace(each, processes=[replace(one, pss_bytes=None) for one in each.processes]) for each in uses[::2]]
    assert re.search(r"Memory, main process 1\.3 GiB 1\.3 GiB", shown([*half, *uses])), "some windows tell"
    written = [use for use in uses if not whole.windows[use.window].setting]
    rough = [replace(each, processes=[replace(one, pss_bytes=None) for one in each.processes]) for each in written]
    others = [use for use in uses if whole.windows[use.window].setting]
    assert re.search(r"Memory, main process 59\.6 GiB 59\.6 GiB", shown([*rough, *others])), (
        "as written no window tells"
    )


def test_nothing_is_said_to_wait_for_a_device_that_is_not_there() -> None:
    """Where the model trains on the CPU there is none, and `.item()` waits for nothing."""
    gpu = load("gpu")
    assert gpu.baseline is not None
    cpu = replace(gpu, baseline=replace(gpu.baseline, device="cpu"))
    for result, waits in ((gpu, True), (cpu, False)):
        step, device = (words_of(section(html.render(result), name)) for name in ("step", "device"))
        assert ("the program waits for the device after every phase" in step) is waits
        assert ("makes the program wait until the device has computed it" in device) is waits
        assert ("such a call waits for nothing" in device) is not waits


@pytest.mark.parametrize(("count", "said"), [(1, "1 worker, which is busy"), (2, "2 workers, which are busy")])
def test_who_makes_batches_is_said_in_its_number(count: int, said: str) -> None:
    whole = load("pets")
    way = next(each for each in whole.loading if each.workers)
    workers = [replace(way.workers[0], worker=number) for number in range(count)]
    result = replace(whole, loading=[replace(way, num_workers=count, workers=workers)])
    assert f"Batches are made by {said}" in words_of(section(html.render(result), "loading"))


@pytest.mark.parametrize(("collections", "said"), [(1, "ran once"), (3, "ran 3 times")])
def test_how_often_the_collector_ran_is_said_in_its_number(collections: int, said: str) -> None:
    collected = replace(load("pets"), garbage=GarbageCollection(collections=collections, ms_per_step=1.0, share=0.1))
    assert f"collector {said}" in words_of(section(html.render(collected), "step"))


def test_machine_shows_every_gpu_and_what_held_it_back() -> None:
    machine = words_of(section(html.render(load("gpu")), "machine"))
    assert re.search(r"0 NVIDIA H100 80GB HBM3 As written 82 %", machine)
    assert re.search(r"1 NVIDIA H100 80GB HBM3 As written 76 %", machine)
    assert "GPU clocks were limited: power cap." in machine


def test_main_process_and_workers_are_told_apart() -> None:
    code = section(html.render(load("gpu")), "code")
    main, workers = code.split("Workers <span", 1)
    assert "<code>item</code>" in main
    assert "<code>item</code>" not in workers
    assert "<code>resize</code>" in workers
    assert "none of yours" in workers
    assert code.count('class="flame"') == 2
    assert code.index("<details>") < code.index('class="flame"')


def listing(count: int, hot: int, seconds: float = 9.0) -> LineListing:
    lines = [
        LineCost(
            line=at, text=f"    line_{at}()", hits=1, seconds=seconds if at == hot else 0.01, share=0.9 * (at == hot)
        )
        for at in range(1, count + 1)
    ]
    return LineListing(name="train", path="train.py", first_line=1, seconds=10.0, lines=lines)


def with_listings(*listings: LineListing) -> Result:
    return replace(load("pets"), profiles=Profiles(lines=LineProfile(steps=4, listings=list(listings))))


def test_a_long_function_shows_its_hot_line_first_and_folds_the_rest() -> None:
    code = section(html.render(with_listings(listing(200, hot=150))), "code")
    open_part = outside_details(code)
    assert '<tr class="heat-4"><th scope="row" class="number">150</th>' in open_part
    assert "line_140()" not in open_part
    assert len(re.findall("<tr", open_part)) < 20
    assert "line_1()" in code
    assert "line_200()" in code
    assert "143 lines before" in code
    assert "44 lines after" in code


def test_a_short_function_is_shown_whole_and_a_hot_first_line_has_nothing_before_it() -> None:
    assert "<details" not in section(html.render(with_listings(listing(20, hot=3))), "code")
    code = section(html.render(with_listings(listing(100, hot=1))), "code")
    assert "lines before" not in code


def test_code_is_shown_without_the_indentation_that_all_lines_share() -> None:
    texts = ["    def train():", "", "        step()"]
    lines = [LineCost(line=at, text=text) for at, text in enumerate(texts, start=1)]
    code = section(html.render(with_listings(replace(listing(3, hot=1), lines=lines))), "code")
    assert re.findall("<td><code>(.*?)</code></td></tr>", code) == ["def train():", "", "    step()"]


def test_device_shows_how_well_it_is_used_and_operators_alone_are_not_called_a_device() -> None:
    device = words_of(section(html.render(load("gpu")), "device"))
    for said in ("Busy 81 %", "Occupancy 37 %", "Tensor Cores 0 %", "Idle 19 %", "train.py, line 97 item 1× 31 ms"):
        assert said in device
    assert '<h2 id="device-title">Operators</h2>' in section(html.render(load("pets")), "device")


def test_lines_that_wait_for_a_value_are_shown_without_a_trace() -> None:
    result = replace(load("gpu"), profiles=None)
    device = section(html.render(result), "device")
    assert "train.py, line 97" in device
    assert "traced by" not in device


def test_what_is_not_known_is_said_folded_and_files_are_named() -> None:
    pets = html.render(load("pets"))
    method = section(pets, "method")
    unknown = words_of(method[method.index('id="unknown"') :])
    assert "There is no device to copy to." in unknown
    assert "this kernel was built without delay accounting" in unknown
    assert "report-artifacts/lines.lprof" in words_of(method)
    assert "read it with python -m line_profiler" in method
    assert "`line_profiler` is not installed" not in pets
    assert "<code>line_profiler</code> is not installed" in html.render(load("gpu"))


def deep_tree(depth: int) -> CallNode:
    node = CallNode(name="leaf", path="a.py", line=1, count=10)
    for _ in range(depth):
        node = CallNode(name="call", path="a.py", line=2, count=10, children=[node])
    return node


def wide_tree(levels: int, count: int) -> CallNode:
    below = [wide_tree(levels - 1, count // 9) for _ in range(9)] if levels else []
    return CallNode(name="function" * 3, path="/usr/lib/package/module.py", line=7, count=count, children=below)


def enormous() -> Result:
    """More of everything than any real examination brings."""
    result = load("pets")
    used, profiles = result.utilization, result.profiles
    assert used is not None
    assert profiles is not None
    assert profiles.sampling is not None
    samples = 60_000
    operator = Operator(name="kernel" * 60, calls=1, cpu_ms=1.0, device_ms=1.0, share=0.01)
    events = [
        Event(lane=f"worker {at % 64}", kind="fetch", start=at / 100, seconds=0.3, batch=at) for at in range(20_000)
    ]
    return replace(
        result,
        windows=[replace(result.windows[at % 40], reason="x" * 300) for at in range(5_000)],
        utilization=replace(
            used,
            times=[at / 10 for at in range(samples)],
            series={f"gpu{n}_utilization": [n / 10 + at % 7 / 100 for at in range(samples)] for n in range(8)},
            spans=[replace(used.spans[0], start=at, end=at + 0.5) for at in range(6_000)],
            windows=used.windows * 100,
        ),
        profiles=Profiles(
            sampling=replace(
                profiles.sampling,
                functions=profiles.sampling.functions * 300,
                trees={"main": wide_tree(4, 100_000), "workers": deep_tree(900)},
            ),
            lines=LineProfile(steps=4, listings=[listing(3_000, hot=1_500)] * 40),
            device=DeviceProfile(steps=4, seconds=1.0, operators=[operator] * 3_000, kernels=[operator] * 3_000),
        ),
        timelines=[Timeline(setting={}, seconds=200.0, events=events)] * 5,
        findings=result.findings * 6,
        not_judged=result.not_judged * 30,
    )


def test_a_page_with_enormous_evidence_stays_below_a_megabyte() -> None:
    result = enormous()
    text = html.render(result)
    assert len(text.encode()) < 1_000_000
    data = json.loads(embedded_data(result))
    assert data["verdict"]["sentence"] == result.verdict.sentence
    for name in ("why", "step", "machine", "code", "device"):
        assert section(text, name)


def test_evidence_is_thinned_where_endless_texts_would_make_the_page_too_large() -> None:
    endless = LineListing(
        name="train",
        path="/a" * 9_000,
        first_line=1,
        seconds=1.0,
        lines=[LineCost(line=at, text="é" * 400, hits=1, seconds=1.0, share=0.001) for at in range(900)],
    )
    result = with_listings(*[endless] * 8)
    result = replace(result, loading=[replace(result.loading[1], workers=result.loading[1].workers * 16)] * 4)
    text = html.render(replace(result, findings=[replace(each, sentence="é" * 4_000) for each in result.findings] * 9))
    assert len(text.encode()) < 1_000_000


def test_thinning_drops_first_what_is_missed_least() -> None:
    result = load("pets")
    sizes = [len(embedded_data(result))]
    for step in thinning.STEPS:
        result = step(result)
        sizes.append(len(embedded_data(result)))
    assert sizes == sorted(sizes, reverse=True)
    assert result.findings == load("pets").findings
    assert result.phases == load("pets").phases


def test_a_pruned_tree_keeps_the_counts_of_what_is_left() -> None:
    tree = CallNode(
        name="root",
        path="",
        line=0,
        count=100,
        children=[
            CallNode(name="hot", path="", line=0, count=97),
            CallNode(name="cold", path="", line=0, count=3),
        ],
    )
    pruned = thinning.pruned(tree, 0.05)
    assert (pruned.count, [child.name for child in pruned.children]) == (100, ["hot"])
    assert thinning.pruned(deep_tree(500), 0.0, deepest=3).children[0].children[0].children == []


def test_a_shortened_listing_keeps_its_hottest_lines_in_order() -> None:
    kept = thinning.shortened(listing(500, hot=77), 10)
    assert 77 in [line.line for line in kept.lines]
    assert [line.line for line in kept.lines] == sorted(line.line for line in kept.lines)
    assert len(kept.lines) == 10


def test_that_it_ended_because_it_was_sure_stands_beside_what_it_took() -> None:
    result = load("pets")
    assert "sure after" not in section(html.render(result), "method")
    sure = replace(result, method=replace(result.method, seconds=112.0, sure_after_seconds=97.0))
    assert "took 1 min 52 s, sure after 1 min 37 s" in words_of(section(html.render(sure), "method"))
    known = replace(sure, method=replace(sure.method, claimed_after_seconds=61.0))
    assert "a large gain known after 1 min 01 s, sure after 1" in words_of(section(html.render(known), "method"))
