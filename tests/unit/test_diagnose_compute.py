"""Rules about the work of a step that have more than one side, and the places that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    AVERAGING,
    BLUR,
    BLUR_LISTING,
    BY_ID,
    FILE,
    FOUND,
    GETITEM,
    ITEM,
    STEPS,
    TORCH,
    TRAINING,
    finding,
    healthy,
    in_workers,
    listing,
    listings,
    loading,
    node,
    on_gpu,
    operators,
    profiled,
    sampled,
    shares,
    use,
    window,
)
from tests.unit.test_evidence import beside

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.diagnose._places import hottest_between, kind_of, main_stacks
from bottleneck_doctor.documents.report import (
    CallNode,
    EpochPause,
    Finding,
    GarbageCollection,
    HotFunction,
    Operator,
    PaddingUse,
    Phases,
    PhaseTable,
    Site,
    Speedup,
    Window,
)
from bottleneck_doctor.runtime.wire import messages


def test_work_between_without_listings_is_named_by_the_table_of_functions() -> None:
    row = HotFunction(
        role="main", name="train", path=FILE, line=56, own_name="train", own_path=FILE, own_line=56, share=0.4, count=40
    )
    evidence = profiled(healthy(phases=shares(between=0.4)), lines=None, sampling=sampled(functions=[row]))
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=56), "the tree's line of the training function is that of the loop"


@pytest.mark.parametrize(
    ("head", "line", "averages"),
    [
        (
            "for mean, weight in zip(kept, model.parameters()):",
            "mean.copy_(mean * decay + weight * (1.0 - decay))",
            True,
        ),
        ("for k, v in self.ema.state_dict().items():", "v += (1 - d) * msd[k].detach()", True),
        ("for k, v in self.ema.state_dict().items():", "v *= d", True),
        ("for p, t in zip(ps, ts):", "t.data = t.data * tau + p.data * (1 - tau)", True),
        ("for s, p in zip(shadow, params):", "s.mul_(d).add_(p, alpha=1 - d)", True),
        ("for p in model.parameters():", "p.data.mul_(0.9).add_(p.grad, alpha=-0.1)", False),
        ("for p, v in zip(params, steps):", "v.mul_(momentum).add_(g, alpha=lr)", False),
        ("for p in model.parameters():", "p.data.clamp_(-c, c)", False),
        ("while True:", "mean.lerp_(weight, 0.1)", False),
    ],
)
def test_what_averages_weights_is_told_from_what_updates_them(head: str, line: str, averages: bool) -> None:
    inner = listing("average", 80, ("def average(kept, model):", 0.0), (head, 0.1), (line, 0.8))
    found = diagnose(profiled(healthy(phases=shares(between=0.4)), lines=listings(AVERAGING, inner)))
    assert found.findings[0].id == ("averaged-weights" if averages else "work-between-steps")


def test_work_between_is_followed_into_a_callback() -> None:
    trainer = listing(
        "Trainer.fit",
        50,
        ("def fit(self, loader):", 0.0),
        ("for batch in loader:", 1.0),
        ("loss = self.model(batch)", 1.0),
        ("loss.backward()", 1.0),
        ("for callback in self.callbacks:", 0.1),
        ("callback.on_step_end(self)", 6.0),
    )
    light = listing("Mean.on_step_end", 10, ("self.total += 1", 0.1))
    heavy = listing("Spectrum.on_step_end", 30, ("weights = self.weights()", 0.5), ("values = svd(weights)", 5.3))
    found = finding(
        "work-between-steps",
        profiled(healthy(phases=shares(between=0.6)), lines=listings(trainer, light, heavy)),
    )
    assert found is not None
    assert found.site == Site(file=FILE, line=31)


def test_the_line_that_calls_a_framework_s_trainer_is_not_where_its_callbacks_work() -> None:
    lightning = "/x/site-packages/lightning/"
    step = node(
        "run",
        lightning + "loops/fit_loop.py",
        100,
        node("_call_impl", TORCH + "nn/modules/module.py", 1500, count=20),
        node("backward", TORCH + "_tensor.py", 500, count=30),
        node("log_metrics", lightning + "loggers/csv_logs.py", 70, count=50),
    )
    fit = node("fit", lightning + "trainer/trainer.py", 500, step)
    tree = node("main", "", 0, node("main", FILE, 90, fit, own=True))
    sampling = replace(sampled(), trees={"main": tree})
    evidence = profiled(healthy(phases=shares(between=0.5)), sampling=sampling, lines=None)
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert found.site is None, "nobody would change line 90, `trainer.fit(model)`, for what a logger does"
    assert "`log_metrics` (csv_logs.py)" in found.sentence
    callback = node("on_batch_end", FILE, 30, node("write", "/x/site-packages/x/w.py", 1, count=60), own=True)
    own = replace(step, children=[*step.children, callback])
    tree = node("main", "", 0, node("main", FILE, 90, replace(fit, children=[own]), own=True))
    found = finding("work-between-steps", profiled(evidence, sampling=replace(sampling, trees={"main": tree})))
    assert found is not None
    assert found.site == Site(file=FILE, line=30), "a callback of the user's own is a place"
    assert "Most of this work is done at train.py, line 30" in found.sentence
    seldom = replace(own, children=[*step.children, replace(callback, count=8, children=[])])
    tree = node("main", "", 0, node("main", FILE, 90, replace(fit, children=[seldom]), own=True))
    found = finding("work-between-steps", profiled(evidence, sampling=replace(sampling, trees={"main": tree})))
    assert found is not None
    assert found.site is None, "8 of 58 samples are not where it goes by"


def test_batches_that_no_dataloader_makes_are_told_as_such() -> None:
    """Libraries for time series make batches by iterators of their own, below a framework's loop."""
    lightning, series = "/x/site-packages/lightning/", "/x/site-packages/series/"
    making = node("Slice.__iter__", series + "itertools.py", 422, node("pad", series + "pad.py", 7, count=40), count=10)
    fetched = node("Fetcher.__next__", lightning + "loops/fetchers.py", 61, making)
    passes = (
        node("_call_impl", TORCH + "nn/modules/module.py", 1500, count=20),
        node("backward", TORCH + "_tensor.py", 500, count=30),
    )
    sampling = sampled()

    def found(*children: CallNode) -> Finding:
        step = node("run", lightning + "loops/fit_loop.py", 100, *children)
        tree = node("main", "", 0, node("main", FILE, 90, step, own=True))
        evidence = healthy(phases=shares(between=0.5))
        made = finding(
            "work-between-steps", profiled(evidence, sampling=replace(sampling, trees={"main": tree}), lines=None)
        )
        assert made is not None
        return made

    told = found(*passes, fetched)
    assert "`Slice.__iter__` (itertools.py) made the next batch, without a DataLoader of torch's" in told.sentence
    assert told.sentence.startswith("Work other than the model's passes and the optimizer takes 50 % of the time")
    assert "keep it" in told.advice
    for other in (
        found(*passes, node("log", lightning + "loggers/csv_logs.py", 70, making)),
        found(*passes, fetched, node("log", lightning + "loggers/csv_logs.py", 70, count=90)),
    ):
        assert "next batch" not in other.sentence
        assert "loading" in other.sentence


def test_the_innermost_function_that_most_of_the_work_passes_through_is_named() -> None:
    """A library that infers computes its loss in many small functions, below one that also makes the passes."""
    pyro, torch = "/x/site-packages/pyro/", "/x/site-packages/torch/distributions/"
    ends = [node(f"part_{number}", torch + "utils.py", number, count=6) for number in range(1, 9)]
    score = node("log_prob", torch + "bernoulli.py", 120, *ends)
    trace = node("get_trace", pyro + "trace.py", 60, score, node("sample", pyro + "primitives.py", 9, count=12))
    own = replace(trace, name="mine", path=FILE, own=True)
    evidence = healthy(phases=shares(between=0.5))

    def told(*children: CallNode) -> str:
        passes = node("backward", TORCH + "_tensor.py", 500, count=40)
        step = node("step", pyro + "svi.py", 100, passes, *children)
        sampling = replace(sampled(), trees={"main": node("main", "", 0, node("train", FILE, 50, step, own=True))})
        found = finding("work-between-steps", profiled(evidence, sampling=sampling, lines=None))
        assert found is not None
        return found.sentence

    assert "In 80 % of the stack samples of this work, `log_prob` (bernoulli.py) was running" in told(trace)
    assert "`log_prob`" in told(own), "a function of the user's own is named by its line"
    half = [node(f"rest_{number}", pyro + "rest.py", number, count=6) for number in range(1, 10)]
    assert "`get_trace` (trace.py)" in told(trace, *half)
    assert "was running" not in told(*half), "`step` makes the passes, too"


def test_the_function_that_is_called_for_it_is_named_and_not_its_inner_part() -> None:
    """`self.log` of Lightning spends its time in helpers of other files, whose names say nothing to a user."""
    lightning = "/x/site-packages/lightning/"
    moved = node("_apply_to_collection_slow", "/x/site-packages/lightning_utilities/apply_func.py", 154, count=30)
    kept = node(
        "_ResultCollection.log", lightning + "result.py", 412, moved, node("add", lightning + "a.py", 1, count=9)
    )
    kept = node("apply_to_collection", "/x/site-packages/lightning_utilities/apply_func.py", 78, kept)
    hidden = node("Off.__call__.<locals>._fn", "/x/site-packages/torch/eval_frame.py", 1548, kept)
    logged = node(
        "LightningModule.log", lightning + "module.py", 531, hidden, node("check", lightning + "b.py", 2, count=9)
    )
    rest = [node(f"rest_{number}", lightning + "rest.py", number, count=5) for number in range(1, 8)]
    step = node("training_step", "/x/site-packages/net/net.py", 100, logged, *rest)
    passes = node("backward", TORCH + "_tensor.py", 500, count=40)
    tree = node("main", "", 0, node("train", FILE, 50, node("run", lightning + "loop.py", 9, passes, step), own=True))
    sampling = replace(sampled(), trees={"main": tree})
    found = finding("work-between-steps", profiled(healthy(phases=shares(between=0.5)), sampling=sampling, lines=None))
    assert found is not None
    assert "58 % of the stack samples of this work, `LightningModule.log` (module.py) was running" in found.sentence


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ([("step", "/x/site-packages/transformers/optimization.py")], "optimizer"),
        ([("Closure.closure", "/x/site-packages/lightning/automatic.py"), ("loss", "/x/loss.py")], "between"),
        ([("closure", FILE), ("_call_impl", TORCH + "nn/modules/module.py"), ("relu", "/x/relu.py")], "forward"),
        ([("closure", FILE), ("Tensor.backward", TORCH + "_tensor.py")], "backward"),
        ([("closure", FILE), ("wrapper", TORCH + "optim/optimizer.py")], "optimizer"),
    ],
)
def test_what_an_optimizer_s_closure_does_is_not_the_optimizer_s_work(calls: list[tuple[str, str]], kind: str) -> None:
    outer = ("main", FILE), ("Adam.step", TORCH + "optim/adam.py")
    assert kind_of(tuple(node(name, path, 1) for name, path in (*outer, *calls))) == kind


def test_what_runs_between_epochs_is_not_what_steps_do() -> None:
    """Stacks are sampled in pauses, too, where a library may collect garbage for as long as its steps take."""
    collecting = node("train_epoch", "/x/site-packages/pykeen/loop.py", 493, count=90)
    pause = EpochPause(seen=9, seconds=10.0, evaluation=0.0, saving=0.0, first_batch=0.0, rest=10.0)
    for rest, named in ((10.0, False), (0.5, True)):
        evidence = healthy(phases=shares(between=0.2), epoch_pause=replace(pause, seconds=rest, rest=rest), windows=[])
        found = finding("work-between-steps", profiled(evidence, sampling=sampled(between=[collecting]), lines=None))
        assert found is not None
        assert ("train_epoch" in found.sentence) == named


def test_what_is_not_explained_is_told_in_the_profile_s_own_words() -> None:
    """An environment of a rollout: no callback, no metric, no logging."""
    work = [node("step", FILE, 90, node("simulate", "/x/site-packages/gym/core.py", 7, count=50), own=True)]
    evidence = profiled(healthy(phases=shares(between=0.5)), sampling=sampled(between=work), lines=None)
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert "`simulate` (core.py)" in found.sentence
    for guess in ("callback", "metric", "logging"):
        assert guess not in found.sentence


def test_a_loop_without_a_period_is_judged_by_two_windows() -> None:
    """A rollout fell into the window of phases, and the samples of the stack say that it is a tenth."""
    odd = replace(FOUND, periodic=False)
    evidence = healthy(phases=shares(between=0.6), found=odd)
    work = [node("step", FILE, 90, count=100, own=True)]
    assert finding("work-between-steps", profiled(evidence, sampling=sampled(between=work))) is not None
    assert finding("work-between-steps", profiled(evidence, sampling=sampled())) is None
    assert diagnose(profiled(evidence, sampling=None), [BY_ID["work-between-steps"]]).not_judged


def test_a_forward_pass_of_no_module_is_no_work_between_the_steps() -> None:
    """Weights and slices of tensors: what nobody calls as a module is seen as operations only."""
    bare = replace(FOUND, has_root_module=False, has_loader=False)
    seen = Phases(
        data_wait=0.0, host_to_device=0.0, forward=0.0, backward=0.5, optimizer=0.0, zero_grad=0.0, between=0.5
    )
    evidence = healthy(phases=seen, found=bare)
    assert finding("work-between-steps", evidence) is None, "operations take 95 % of the time"
    computes = finding("compute-bound", evidence)
    assert computes is not None
    assert "take 95 % of the time (45 %, 50 % and 0 %)" in computes.sentence.replace("\u202f", " ")
    few = [Operator(name="aten::mm", calls=100, cpu_ms=550.0, device_ms=0.0, share=0.55)]
    loops = finding("work-between-steps", profiled(evidence, device=operators(operators=few)))
    assert loops is not None
    assert loops.evidence["between_share"] == pytest.approx(0.45)
    assert loops.site is None, "the hottest line may be the forward pass"
    unknown = diagnose(profiled(evidence, device=None), [BY_ID["work-between-steps"]])
    assert unknown.not_judged


def test_collecting_garbage_is_not_counted_as_work_between_as_well() -> None:
    evidence = healthy(
        phases=shares(between=0.5), garbage=GarbageCollection(collections=9, ms_per_step=30.0, share=0.3)
    )
    made = {each.id: each.weight for each in diagnose(evidence).findings}
    assert made["garbage-collection"] > made["work-between-steps"]
    assert finding("work-between-steps", replace(evidence, phases=PhaseTable(baseline=shares(between=0.38)))) is None


def test_a_loop_around_item_calls_counts_as_theirs() -> None:
    loop = listing(
        "train",
        50,
        ("for batch in loader:", 1.0),
        ("loss = model(batch)", 1.0),
        ("loss = model(batch)", 1.0),
        ("loss.backward()", 1.0),
        ("for index in range(1024):", 1.5),
        ("right += guesses[index].item()", 4.0),
    )
    evidence = profiled(healthy(phases=shares(between=0.6), synchronising=[ITEM]), lines=listings(loop))
    assert finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, per_step=1.0)])) is not None
    few = finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, per_step=2, ms_per_step=20.0)]))
    many = finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, ms_per_step=8.0)]))
    assert few is not None
    assert many is not None
    assert few.weight == pytest.approx(0.2)
    assert many.weight == pytest.approx(0.6 * 4.0 / 5.0), "the part of the work between that the line has"
    assert diagnose(replace(evidence, synchronising=[replace(ITEM, ms_per_step=20.0)])).findings[0].id == (
        "synchronising-calls"
    )


def test_on_a_device_a_synchronising_call_costs_what_the_device_stands_still_for() -> None:
    waiting = replace(ITEM, per_step=1.0, ms_per_step=90.0)
    assert finding("synchronising-calls", on_gpu(healthy(synchronising=[waiting]), idle_share=0.02)) is None
    lost = finding("synchronising-calls", on_gpu(healthy(synchronising=[waiting]), idle_share=0.3))
    assert lost is not None
    assert lost.weight == pytest.approx(0.3)


def test_python_in_loading_and_between_steps_is_not_the_passes() -> None:
    evidence = healthy(phases=shares(data_wait=0.5, between=0.3))
    few = [Operator(name="aten::conv2d", calls=100, cpu_ms=200.0, device_ms=0.0, share=0.2)]
    assert finding("python-bound", profiled(evidence, device=operators(operators=few))) is None


def test_the_line_of_the_optimizer_is_not_that_of_another_phase() -> None:
    """One function holds the loop: the tree knows it by the line of its backward pass, the table by every line."""
    step = node("_multi_tensor_rmsprop", TORCH + "optim/rmsprop.py", 463, count=25)
    tree = node("main", "", 0, node("train", FILE, 114, node("backward", TORCH + "_tensor.py", 5, count=40), own=True))
    tree = replace(tree, children=[replace(tree.children[0], count=65, children=[*tree.children[0].children, step])])
    common = {"role": "main", "own_name": "train", "own_path": FILE}
    rows = [
        HotFunction(
            name="backward",
            path=TORCH + "_tensor.py",
            line=5,
            own_line=114,
            share=0.6,
            count=40,
            **common,  # type: ignore[arg-type]
        ),
        HotFunction(
            name="_multi_tensor_rmsprop",
            path=TORCH + "optim/rmsprop.py",
            line=463,
            own_line=117,
            share=0.4,
            count=25,
            **common,  # type: ignore[arg-type]
        ),
    ]
    sampling = replace(sampled(), trees={"main": tree}, functions=rows)
    evidence = profiled(healthy(phases=shares(optimizer=0.4)), sampling=sampling, lines=None)
    found = finding("slow-optimizer", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=117)
    lines = [("def train():", 0.0), *[("x = 1", 0.0)] * 3, ("loss.backward()", 0.6), ("x = 2", 0.0), ("y = 2", 0.0)]
    listed = listing("train", 110, *lines, ("scaler.step(optimizer)", 0.4))
    at_loop = replace(evidence, found=replace(FOUND, backward_site=messages.Site(FILE, 114), forward_site=None))
    found = finding("slow-optimizer", profiled(at_loop, lines=listings(listed)))
    assert found is not None
    assert found.site == Site(file=FILE, line=117), "and not the hottest line of the function around it"


def test_rare_slow_samples_are_jitter_before_they_are_a_slow_fetch() -> None:
    steps = replace(STEPS, mean_ms=100.0, p50_ms=5.0, p95_ms=900.0, jitter=180.0, wait_mean_ms=95.0, wait_p95_ms=890.0)
    evidence = replace(healthy(0.95, loop=loading(fetch_ms=90.0, fetch_p95_ms=880.0)), steps=steps)
    made = diagnose(evidence)
    assert [each.id for each in made.findings[:2]] == ["step-jitter", "slow-fetch"]
    assert "one batch in twenty takes 880 ms or more to fetch, instead of 90 ms on average" in made.findings[0].sentence


def test_rare_slow_samples_make_windows_differ_without_a_neighbour() -> None:
    """One window had four slow batches in forty, where others had two. Beside other programs nobody knows."""
    steps = replace(STEPS, mean_ms=160.0, p50_ms=5.0, p95_ms=900.0, jitter=180.0, wait_mean_ms=145.0, wait_p95_ms=890.0)
    evidence = replace(healthy(0.95, loop=loading(fetch_ms=90.0, fetch_p95_ms=880.0)), steps=steps)
    assert evidence.baseline is not None
    assert steps.mean_ms > 1.5 * evidence.baseline.step_ms
    assert diagnose(evidence).findings[0].id == "step-jitter"
    busy = replace(evidence, utilization=use(others_cpu=1.0))
    assert "was disturbed" in diagnose(busy, [BY_ID["step-jitter"]]).not_judged[0].reason


@pytest.mark.parametrize(
    ("between", "p50", "seldom"),
    [
        (0.38, 28.0, True),
        (0.38, 44.0, False),  # Each step has its part of it.
        (0.2, 28.0, False),  # Longer steps have other reasons, too.
    ],
)
def test_work_that_only_some_steps_have_is_told_once(between: float, p50: float, seldom: bool) -> None:
    """Samples of an epoch are drawn before the first of its twenty steps."""
    steps = replace(STEPS, steps=165, mean_ms=46.0, p50_ms=p50, p95_ms=120.0, jitter=120.0 / p50, outliers=8)
    evidence = replace(healthy(phases=shares(between=between)), steps=steps)
    made = {each.id: each for each in diagnose(evidence).findings}
    said = made["work-between-steps"]
    assert ("half of the steps take 28 ms or less, and the mean is 46 ms" in said.sentence) is seldom
    assert ("only every so many steps" in said.advice) is not seldom
    if p50 < 40:
        assert ("step-jitter" in made) is not seldom


@pytest.mark.parametrize(("loads", "judged"), [((1.4, 1.2), False), ((1.4, 0.1), True), ((None,), True)])
def test_steps_that_were_timed_while_another_program_had_its_burst_say_nothing(
    loads: Sequence[float | None], judged: bool
) -> None:
    steps = replace(STEPS, mean_ms=100.0, p50_ms=5.0, p95_ms=900.0, jitter=180.0, wait_mean_ms=95.0, wait_p95_ms=890.0)
    calm = [window(number, around=beside(0.05)) for number in range(3)]
    phases = [
        replace(window(number), mode="phases", around=None if load is None else beside(load))
        for number, load in enumerate(loads, 3)
    ]
    loop = loading(fetch_ms=90.0, fetch_p95_ms=880.0)
    evidence = replace(healthy(0.95, loop=loop), steps=steps, windows=[*calm, *phases])
    made = diagnose(evidence, [BY_ID["step-jitter"]])
    assert bool(made.findings) is judged
    if not judged:
        assert "other programs used more of the machine" in made.not_judged[0].reason


def test_bursts_of_workers_are_not_jitter() -> None:
    steps = replace(STEPS, p50_ms=20.0, p95_ms=300.0, jitter=15.0, wait_mean_ms=80.0, wait_p95_ms=290.0)
    assert finding("step-jitter", replace(healthy(0.8, loop=in_workers(4)), steps=steps)) is None


def test_steps_of_a_window_that_had_neighbours_are_not_taken_for_all_steps() -> None:
    """Half of them took 35 ms and two of 37 more than a second, where timed windows have 63 ms a step."""
    restless = replace(STEPS, mean_ms=250.0, p50_ms=35.0, p95_ms=1800.0, jitter=50.4, outliers=2, steps=37)
    made = diagnose(healthy(steps=restless), [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "was disturbed" in made.not_judged[0].reason
    always = replace(restless, mean_ms=100.0)
    assert finding("step-jitter", healthy(steps=always)) is not None


@pytest.mark.parametrize("loop", [replace(FOUND, period=16), replace(FOUND, periodic=False)])
def test_steps_that_do_different_work_differ_in_length(loop: messages.Found) -> None:
    """Sixteen updates a rollout: the first of them holds the rollout, and takes a hundred times as long."""
    uneven = replace(STEPS, p50_ms=1.6, p95_ms=240.0, jitter=148.0, outliers=12)
    made = diagnose(healthy(steps=uneven, found=loop), [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "may do different work" in made.not_judged[0].reason


def of_sizes(grows: float) -> list[Window]:
    """Windows as written whose batches differ by half, and whose steps take as much longer to this power."""
    sizes = (100.0, 130.0, 85.0, 150.0, 110.0, 95.0)
    return [
        window(number, elements=round(size * 1000), seconds=0.01 * size**grows) for number, size in enumerate(sizes)
    ]


def test_longer_steps_of_larger_batches_are_no_jitter() -> None:
    """Texts of 10 to 400 words: if all steps took as long as the median, training would compute less."""
    uneven = replace(STEPS, p50_ms=80.0, p95_ms=200.0, jitter=2.5, outliers=12)
    made = diagnose(healthy(steps=uneven, windows=of_sizes(1.0)), [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "batches differ in size" in made.not_judged[0].reason
    assert finding("step-jitter", healthy(steps=uneven, windows=of_sizes(0.0))) is not None


def test_what_a_smaller_batch_takes_is_said_with_its_padding() -> None:
    padded = healthy(loop=loading(padding=PaddingUse(columns=512.0, empty=0.6, behind_longest=0.0)))
    found = finding("padding", replace(padded, windows=of_sizes(1.0)))
    assert found is not None
    assert found.sentence.endswith("Here, a batch that is 10 % smaller takes 10 % less time.")
    unknown = finding("padding", padded)
    assert unknown is not None
    assert unknown.sentence.endswith("beside long ones.")


def test_uneven_steps_beside_other_programs_are_not_the_training_s() -> None:
    uneven = replace(STEPS, p50_ms=80.0, p95_ms=200.0, jitter=2.5, outliers=12)
    busy = healthy(steps=uneven, utilization=use(others_cpu=1.3))
    made = diagnose(busy, [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "other programs kept 1.3 cores busy" in made.not_judged[0].reason
    assert finding("step-jitter", healthy(steps=uneven, utilization=use(others_cpu=0.1))) is not None
    of_data = replace(uneven, wait_mean_ms=10.0, wait_p95_ms=125.0)
    late = healthy(0.5, steps=of_data, loop=loading(fetch_p95_ms=60.0), utilization=use(others_cpu=1.3))
    assert finding("step-jitter", late) is not None, "samples that take longer do so whoever runs beside"


@pytest.mark.parametrize(("wait", "first"), [(0.06, ["compute-bound", "slow-transform"]), (0.12, ["slow-transform"])])
def test_what_little_there_is_beside_computing_does_not_lead(wait: float, first: list[str]) -> None:
    """A classifier that computes 91 % of the time was told of a transform that takes 5 %, and of nothing else."""
    made = diagnose(profiled(healthy(wait, loop=loading(transforms=BLUR)), lines=listings(GETITEM, BLUR_LISTING)))
    assert [each.id for each in made.findings] == first


def test_a_ceiling_that_one_noisy_window_set_is_not_told_beside_computing() -> None:
    """`At 66 % of the speed with free data: computing is what limits it` contradicts itself."""
    noisy = {"synthetic": Speedup(estimate=1.5, low=0.2, high=9.0, pairs=2, sessions=1)}
    found = finding("compute-bound", healthy(ceilings=noisy))
    assert found is not None
    assert "free" not in found.sentence
    assert "of_ceiling" not in found.evidence


def test_loading_that_takes_cores_from_computing_is_told_where_no_step_waits() -> None:
    shared = {"synthetic": Speedup(estimate=1.3, low=1.2, high=1.4, pairs=1, sessions=1)}
    found = finding("compute-bound", healthy(ceilings=shared))
    assert found is not None
    assert (
        "shares the cores with it: if every batch were ready at once, training would be 1.30× as fast."
        in found.sentence
    )
    assert found.evidence["ceiling"] == 1.3


@pytest.mark.parametrize(
    ("communication", "parts", "limits"),
    [
        (0.4, "Forward, backward, optimizer and communication between processes", "Computing and communication limit"),
        (0.0, "Forward, backward and optimizer", "Computing limits"),
    ],
)
def test_communication_is_not_called_computing(communication: float, parts: str, limits: str) -> None:
    seen = shares(communication=communication)
    found = finding("compute-bound", healthy(phases=seen))
    assert found is not None
    assert found.sentence.startswith(f"{parts} take 97 % of the time (")
    assert found.sentence.endswith(f"{limits} training.")


@pytest.mark.parametrize(
    ("name", "share", "is_named"),
    [("aten::bernoulli_", 0.7, True), ("aten::bernoulli_", 0.25, False), ("aten::addmm", 0.7, False)],
)
def test_an_operation_that_takes_most_is_named_if_it_is_no_product(name: str, share: float, is_named: bool) -> None:
    used = [
        Operator(name=name, calls=20, cpu_ms=1000 * share, device_ms=0.0, share=share),
        Operator(name="aten::mul", calls=20, cpu_ms=100.0, device_ms=0.0, share=0.1),
        Operator(name="enumerate(DataLoader)#next", calls=20, cpu_ms=900.0, device_ms=0.0, share=0.9),
    ]
    found = finding("compute-bound", profiled(healthy(), device=operators(operators=used)))
    assert found is not None
    said = "One kind of operation, `aten::bernoulli_`, takes 70 % of the time." in found.sentence.replace("\u202f", " ")
    assert said is is_named
    assert ("operation_share" in found.evidence) is is_named


def test_the_parts_of_computing_add_up_to_what_is_said_of_all() -> None:
    found = finding("compute-bound", healthy(phases=shares(optimizer=0.1, zero_grad=0.2)))
    assert found is not None
    assert "take 97 % of the time (22 %, 45 % and 30 %)" in found.sentence


@pytest.mark.parametrize("name", ["score", "Ranking.score"])
def test_a_method_that_is_called_in_place_of_the_model_is_no_work_between_the_passes(name: str) -> None:
    score = node(name, FILE, 8, count=40, own=True)
    seen = profiled(healthy(phases=shares(between=0.4)), sampling=sampled(between=[score]))
    called = replace(seen, found=replace(FOUND, methods=[[FILE, "score"]]))
    assert sum(count for _, count in main_stacks(seen, ("between",))) >= 40
    assert sum(count for _, count in main_stacks(called, ("between",))) < 40
    assert sum(count for _, count in main_stacks(called, ("forward",))) >= 40


def test_the_line_that_calls_such_a_method_is_a_pass() -> None:
    seen = profiled(healthy(phases=shares(between=0.1)), lines=listings(TRAINING))
    hot = hottest_between(seen)
    assert hot is not None
    assert hot.site.line == 55
    called = hottest_between(replace(seen, found=replace(FOUND, method_site=messages.Site(FILE, 55))))
    assert called is not None
    assert called.site.line == 56


def test_lines_that_explain_little_of_the_work_are_not_named() -> None:
    """The loop around the function that makes the steps lies in another one, as where each epoch draws its samples."""
    drawing = sampled(between=[node("draw", FILE, 90, count=90, own=True)])
    # Ten steps of 100 ms; the function that makes them takes 0.1 s each in lines between the passes.
    near = profiled(healthy(phases=shares(between=0.9)), lines=listings(TRAINING), sampling=drawing)
    hot = hottest_between(near)
    assert hot is not None
    assert hot.site.line == 55
    far = replace(near, baseline=replace(near.baseline, step_ms=1000.0) if near.baseline is not None else None)
    hot = hottest_between(far)
    assert hot is not None
    assert hot.site.line == 90
