"""The edits that the report offers: right, minimal, in the user's own layout, and never broken code."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import loader_arguments
from bottleneck_doctor.edits.autocast_block import autocast_change
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_call import loader_change

WORKERS: Setting = {"num_workers": 4, "persistent_workers": True}


def loader(source: str, keywords: Setting | None = None, line: int | None = None) -> ChangeText:
    source = textwrap.dedent(source)
    if line is None:
        line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    wanted = WORKERS if keywords is None else keywords
    change = loader_change(source, line, wanted, loader_arguments(wanted)[1])
    assert change is not None
    return change


def added(change: ChangeText) -> list[str]:
    return [line[1:] for line in change.diff.split("\n") if line.startswith("+")]


def removed(change: ChangeText) -> list[str]:
    return [line[1:] for line in change.diff.split("\n") if line.startswith("-")]


def keywords_of(source: str) -> dict[str | None, str]:
    call = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DataLoader")
    )
    return {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}


def test_adds_to_a_call_on_one_line() -> None:
    change = loader("loader = DataLoader(data, batch_size=4)\n")
    assert added(change) == ["loader = DataLoader(data, batch_size=4, num_workers=4, persistent_workers=True)"]
    assert change.line == 1
    assert change.diff.startswith("@@ -1 +1 @@\n")


def test_replaces_a_value_in_place_and_keeps_the_comment() -> None:
    change = loader("loader = DataLoader(data, num_workers=0, shuffle=True)  # slow\n", {"num_workers": 4})
    assert added(change) == ["loader = DataLoader(data, num_workers=4, shuffle=True)  # slow"]


def test_adds_lines_where_each_argument_has_its_own() -> None:
    change = loader(
        """\
        loader = DataLoader(
            data,
            batch_size=4,  # as in the paper
        )
        """
    )
    assert added(change) == ["    num_workers=4,", "    persistent_workers=True,"]
    assert removed(change) == []
    assert change.line == 4


def test_adds_the_missing_comma_before_a_comment() -> None:
    change = loader(
        """\
        loader = DataLoader(
            data,
            batch_size=4  # as in the paper
        )
        """
    )
    assert added(change) == [
        "    batch_size=4,  # as in the paper",
        "    num_workers=4,",
        "    persistent_workers=True",
    ]


def test_follows_arguments_aligned_with_the_parenthesis() -> None:
    change = loader(
        """\
        loader = DataLoader(data,
                            batch_size=4,
                            shuffle=True)
        """
    )
    assert change.edited == textwrap.dedent(
        """\
        loader = DataLoader(data,
                            batch_size=4,
                            shuffle=True,
                            num_workers=4,
                            persistent_workers=True)
        """
    )


def test_appends_where_several_arguments_share_a_line() -> None:
    change = loader("loader = DataLoader(\n    data, batch_size=4\n)\n", {"num_workers": 2})
    assert change.edited == "loader = DataLoader(\n    data, batch_size=4, num_workers=2\n)\n"


def test_keeps_a_trailing_comma_on_one_line() -> None:
    change = loader("loader = DataLoader(data, 4,)\n", {"num_workers": 2})
    assert added(change) == ["loader = DataLoader(data, 4, num_workers=2,)"]


def test_follows_spaces_around_the_sign_and_single_quotes() -> None:
    change = loader("a = DataLoader(data, batch_size = 4, x = 'y')\n", {"multiprocessing_context": "forkserver"})
    assert added(change) == ["a = DataLoader(data, batch_size = 4, x = 'y', multiprocessing_context = 'forkserver')"]


def test_adds_to_a_call_without_arguments() -> None:
    assert added(loader("a = MyDataLoader()\n", {"num_workers": 2})) == ["a = MyDataLoader(num_workers=2)"]


def test_says_where_a_replaced_value_came_from() -> None:
    change = loader("a = DataLoader(data, num_workers=args.workers)\n", {"num_workers": 4})
    assert added(change) == ["a = DataLoader(data, num_workers=4)"]
    assert "args.workers" in change.note


def test_replaces_a_positional_argument() -> None:
    change = loader("a = DataLoader(data, 16, True, None, None, 0)\n", {"num_workers": 4})
    assert added(change) == ["a = DataLoader(data, 16, True, None, None, 4)"]


def test_points_at_unpacked_arguments_instead_of_passing_one_twice() -> None:
    change = loader("a = DataLoader(*positional)\n")
    assert change.diff == ""
    assert "`*positional` may hold num_workers" in change.note
    assert "num_workers=4, persistent_workers=True" in change.note


def test_what_is_written_wins_over_unpacked_options() -> None:
    change = loader("a = DataLoader(data, **options)\n")
    assert added(change) == ['a = DataLoader(data, **{**options, "num_workers": 4, "persistent_workers": True})']
    assert "`**options` may hold num_workers" in change.note


def test_what_may_be_in_unpacked_options_is_given_a_value_that_is_as_good_as_none() -> None:
    change = loader("a = DataLoader(data, **options)\n", {"num_workers": 0})
    assert added(change) == [
        'a = DataLoader(data, **{**options, "num_workers": 0, "prefetch_factor": None, "persistent_workers": False, '
        '"timeout": 0, "multiprocessing_context": None})'
    ]
    assert "`**options` may hold num_workers, prefetch_factor" in change.note


def test_replaces_an_explicit_value_beside_unpacked_options() -> None:
    change = loader("a = DataLoader(data, num_workers=0, **options)\n", {"num_workers": 2})
    assert added(change) == ["a = DataLoader(data, num_workers=2, **options)"]


def test_takes_out_what_needs_workers() -> None:
    change = loader(
        """\
        a = DataLoader(
            data,
            num_workers=8,
            prefetch_factor=4,  # tuned
            persistent_workers=True,
            shuffle=True,
        )
        """,
        {"num_workers": 0, "persistent_workers": True},
    )
    assert keywords_of(change.edited) == {"num_workers": "0", "shuffle": "True"}
    assert removed(change) == ["    num_workers=8,", "    prefetch_factor=4,  # tuned", "    persistent_workers=True,"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = DataLoader(d, num_workers=2, prefetch_factor=4)", "a = DataLoader(d, num_workers=0)"),
        ("a = DataLoader(d, prefetch_factor=4, num_workers=2)", "a = DataLoader(d, num_workers=0)"),
        ("a = DataLoader(prefetch_factor=4, num_workers=2,)", "a = DataLoader(num_workers=0,)"),
        (
            "a = DataLoader(d, num_workers=2, prefetch_factor=4, persistent_workers=(True), timeout=3)",
            "a = DataLoader(d, num_workers=0)",
        ),
        (
            "a = DataLoader(d, num_workers=2, # few\n   persistent_workers=True)",
            "a = DataLoader(d, num_workers=0, # few\n   )",
        ),
    ],
)
def test_takes_out_neatly(before: str, after: str) -> None:
    assert loader(before, {"num_workers": 0}).edited == after


def test_does_nothing_to_what_is_there_already() -> None:
    change = loader("a = DataLoader(d, num_workers=4, persistent_workers=True)\n")
    assert change.diff == ""
    assert "already" in change.note


def test_finds_the_call_from_a_line_in_its_middle() -> None:
    source = "a = Wrapper(\n    DataLoader(\n        d,\n        shuffle=True,\n    ),\n    3,\n)\n"
    for line in (2, 3, 4, 5):
        change = loader_change(source, line, {"num_workers": 2})
        assert change is not None
        assert keywords_of(change.edited) == {"shuffle": "True", "num_workers": "2"}


def test_prefers_the_loader_to_calls_around_and_inside_it() -> None:
    change = loader("fit(model, DataLoader(Images(root='x'), batch_size=4), epochs=3)\n", {"num_workers": 2})
    assert added(change) == ["fit(model, DataLoader(Images(root='x'), batch_size=4, num_workers=2), epochs=3)"]


def test_knows_the_loader_by_another_name() -> None:
    source = "from torch.utils.data import DataLoader as DL\na = fit(DL(make(d)))\n"
    change = loader_change(source, 2, {"num_workers": 2})
    assert change is not None
    assert added(change) == ["a = fit(DL(make(d), num_workers=2))"]


def test_knows_a_loader_by_its_keywords() -> None:
    source = "class L(Base):\n    def __init__(self, d):\n        super().__init__(d, batch_size=int(4))\n"
    change = loader_change(source, 3, {"num_workers": 2})
    assert change is not None
    assert added(change) == ["        super().__init__(d, batch_size=int(4), num_workers=2)"]


def test_does_not_guess_between_two_loaders_on_a_line() -> None:
    change = loader("a, b = DataLoader(x), DataLoader(y)\n")
    assert change.diff == ""
    assert "Several" in change.note


@pytest.mark.parametrize(
    "source",
    [
        "a = DataLoader(é, name='ü', batch_size=4)  # naïve\n",
        "a = DataLoader(d, collate_fn=lambda a, b=(1, 2): (a, b))\n",
        "a = DataLoader(d, collate_fn=lambda x: {k: v for k, v in x})\n",
        'a = DataLoader(d, name=f"{x!r:>{width}}, {y}", shuffle=True)\n',
        "a = DataLoader((d))\n",
        "a = DataLoader(d[1:2, 3], [1, 2], {'a': 1, 'b': 2})\n",
        "a = torch.utils.data.DataLoader[int](d)\n",
        "a = DataLoader(\n    d\n    # , num_workers=8\n)\n",
        "a = DataLoader(  # (\n)\n",
        "\ufeffa = DataLoader(d)\n",
        "x = '''\n\x0c'''\na = DataLoader(d)\n",
        "a = DataLoader(d)",
        'a = DataLoader(d, s="""\n)\n""", shuffle=True)\n',
        "if x:\n\ta = DataLoader(\n\t\td,\n\t\tshuffle=True\n\t)\n",
    ],
)
def test_survives_awkward_source(source: str) -> None:
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader" in text)
    change = loader_change(source, line, WORKERS)
    assert change is not None
    assert change.diff
    body = change.edited.removeprefix("\ufeff")
    # Taking the new keywords out again leaves the program as it was.
    tree = ast.parse(body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in WORKERS]
    assert ast.dump(tree) == ast.dump(ast.parse(source.removeprefix("\ufeff")))
    assert change.edited.startswith("\ufeff") == source.startswith("\ufeff")


def test_keeps_line_ends() -> None:
    change = loader_change("a = DataLoader(\r\n    d,\r\n)\r\n", 1, {"num_workers": 2})
    assert change is not None
    assert change.edited == "a = DataLoader(\r\n    d,\r\n    num_workers=2,\r\n)\r\n"
    assert "\r" not in change.diff


def test_returns_nothing_where_there_is_no_call_or_no_program() -> None:
    assert loader_change("a = 1\n", 1, WORKERS) is None
    assert loader_change("a = DataLoader(\n", 1, WORKERS) is None
    assert loader_change("a = DataLoader(d for d in e)\n", 1, WORKERS) is None


ARGUMENTS = st.lists(
    st.sampled_from(
        [
            "batch_size=4",
            "shuffle=True",
            "num_workers=0",
            "num_workers=args.workers",
            "pin_memory=(False)",
            "prefetch_factor=2",
            "persistent_workers=False",
            "timeout=30",
            "collate_fn=lambda a, *b: (a, b)",
            "sampler=Sampler(d, k=3)",
            "drop_last = not True",
        ]
    ),
    unique_by=lambda argument: argument.split("=")[0].strip(),
    max_size=6,
)
CHANGES = st.fixed_dictionaries(
    {"num_workers": st.integers(0, 9)},
    optional={"persistent_workers": st.booleans(), "prefetch_factor": st.integers(1, 9), "pin_memory": st.booleans()},
)


@settings(max_examples=300, deadline=None)
@given(
    arguments=ARGUMENTS,
    changes=CHANGES,
    separator=st.sampled_from([", ", ",", ",\n        ", ",  # why, (not)\n        ", "\n        , "]),
    opening=st.sampled_from(["", " ", "\n        ", "  # first\n        "]),
    closing=st.sampled_from(["", ",", "\n    ", ",\n    ", "  # last\n    ", ",  # last\n    # end\n    "]),
)
def test_any_layout_gets_exactly_the_keywords(
    arguments: list[str], changes: Setting, separator: str, opening: str, closing: str
) -> None:
    source = f"def f():\n    x = DataLoader({opening}{separator.join(['data', *arguments])}{closing})\n    return x\n"
    change = loader_change(source, 2, changes, loader_arguments(changes)[1])
    assert change is not None
    before = keywords_of(source)
    wanted = {name: repr(value) for name, value in changes.items()}
    if changes["num_workers"] == 0:
        needing = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context")
        wanted = {name: value for name, value in wanted.items() if name not in needing}
        before = {name: value for name, value in before.items() if name not in needing}
    if not change.diff:
        assert keywords_of(source) == before | wanted
        return
    assert keywords_of(change.edited) == before | wanted
    if changes["num_workers"] != 0:
        # Nothing is taken out, so no comment goes with it.
        assert all(comment in change.edited for comment in re.findall("#.*", source))


STEP = """\
import torch

def train(model, loader, criterion, optimizer, scheduler):
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            # forward
            out = model(x)

            loss = criterion(out, y)
            loss.backward()  # here
            optimizer.step()
            scheduler.step()
"""


def autocast(source: str, device: str = "cpu", dtype: str = "bfloat16") -> ChangeText | None:
    lines = source.split("\n")
    forward = next(number for number, text in enumerate(lines, 1) if "model(" in text and "def " not in text)
    backward = next(number for number, text in enumerate(lines, 1) if "backward(" in text)
    return autocast_change(source, forward, backward, device, dtype)


def test_wraps_forward_and_loss() -> None:
    change = autocast(STEP)
    assert change is not None
    assert change.line == 8
    assert added(change) == [
        '            with torch.autocast("cpu", dtype=torch.bfloat16):',
        "                out = model(x)",
        "                loss = criterion(out, y)",
    ]
    assert removed(change) == ["            out = model(x)", "            loss = criterion(out, y)"]


def test_scales_the_loss_for_float16() -> None:
    change = autocast(STEP, "cuda", "float16")
    assert change is not None
    assert added(change) == [
        '    scaler = torch.amp.GradScaler("cuda")',
        '            with torch.autocast("cuda", dtype=torch.float16):',
        "                out = model(x)",
        "                loss = criterion(out, y)",
        "            scaler.scale(loss).backward()  # here",
        "            scaler.step(optimizer)",
        "            scaler.update()",
    ]
    assert "GradScaler" in change.note


def test_unscales_before_clipping() -> None:
    step = "            optimizer.step()\n"
    change = autocast(STEP.replace(step, f"            clip_grad_norm_(p, 1)\n{step}"), "cuda", "float16")
    assert change is not None
    assert (
        "            scaler.unscale_(optimizer)\n"
        "            clip_grad_norm_(p, 1)\n"
        "            scaler.step(optimizer)\n"
    ) in change.edited


def test_float16_is_refused_where_the_step_is_elsewhere() -> None:
    assert autocast(STEP.replace("optimizer.step()", "finish(optimizer)"), "cuda", "float16") is None


def test_uses_the_name_that_torch_has_or_imports_it() -> None:
    aliased = autocast(STEP.replace("import torch", "import torch as th"))
    assert aliased is not None
    assert 'with th.autocast("cpu", dtype=th.bfloat16):' in aliased.edited
    missing = autocast('"""Doc."""\nfrom __future__ import annotations\n' + STEP.replace("import torch", "import os"))
    assert missing is not None
    assert missing.edited.startswith('"""Doc."""\nfrom __future__ import annotations\nimport torch\nimport os\n')


def test_clearing_gradients_stays_outside() -> None:
    step = "loss = criterion(out, y)\n"
    change = autocast(STEP.replace(step, f"{step}            optimizer.zero_grad(set_to_none=True)\n"))
    assert change is not None
    assert added(change)[-1] == "                loss = criterion(out, y)"


def test_what_is_kept_of_a_step_stays_outside() -> None:
    """Metrics and logs stand behind the loss in most programs, and are no part of what autocast is for."""
    step = "loss = criterion(out, y)\n"
    lines = ["accuracy, best = measured(out, y)", "losses.update(loss.item(), len(x))", "total += loss.item()"]
    change = autocast(STEP.replace(step, step + "".join(f"            {line}\n" for line in lines)))
    assert change is not None
    assert added(change)[1:] == ["                out = model(x)", "                loss = criterion(out, y)"]


def test_losses_that_are_gathered_are_a_part_of_the_loss() -> None:
    step = "loss = criterion(out, y)\n"
    summed = STEP.replace(step, "parts.append(criterion(out, y))\n").replace("loss.backward()", "sum(parts).backward()")
    change = autocast(summed)
    assert change is not None
    assert added(change)[1:] == ["                out = model(x)", "                parts.append(criterion(out, y))"]


def test_a_loss_that_is_changed_in_a_condition_is_a_part_of_it() -> None:
    step = "loss = criterion(out, y)\n"
    more = "            if model.extra:\n                loss = loss + model.extra(out)\n            print(loss)\n"
    change = autocast(STEP.replace(step, step + more))
    assert change is not None
    assert added(change)[-1] == "                    loss = loss + model.extra(out)"


def test_leaves_the_inside_of_formatted_strings_alone() -> None:
    source = STEP.replace("loss = criterion(out, y)", 'log = f"""a\n  {x:>{\n 3}} b\n"""\n            loss = f(out)')
    change = autocast(source)
    if change is not None:  # such a field is a syntax error before Python 3.12
        assert '"""a\n  {x:>{\n 3}} b\n"""' in change.edited


def test_leaves_the_inside_of_strings_alone() -> None:
    source = STEP.replace("loss = criterion(out, y)", 'log = """a\n  b\n"""\n            loss = criterion(out, y)')
    change = autocast(source)
    assert change is not None
    assert '"""a\n  b\n"""' in change.edited


def test_wraps_a_forward_inside_a_condition_over_several_lines() -> None:
    condition = "if y is None:\n                out = model(\n                    x\n                )"
    change = autocast(STEP.replace("out = model(x)", condition))
    assert change is not None
    assert (
        "                if y is None:\n"
        "                    out = model(\n"
        "                        x\n"
        "                    )\n"
    ) in change.edited


def test_a_line_of_several_statements_moves_as_one() -> None:
    change = autocast("import torch\nout = model(x); loss = f(out)\nloss.backward()\n")
    assert change is not None
    assert added(change)[1] == "    out = model(x); loss = f(out)"


GAN = """\
import torch
for images, _ in loader:
    for_generator.zero_grad()
    z = torch.randn(len(images), 100)
    # fool it
    made = generator(z)
    g_loss = bce(critic(made), valid)
    g_loss.backward()
    for_generator.step()

    for_critic.zero_grad()
    # tell them apart
    real_loss = bce(critic(images), valid)
    fake_loss = bce(critic(made.detach()), fake)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    for_critic.step()
    print(d_loss.item())
"""

WASSERSTEIN = """\
import torch
for i, (images, _) in enumerate(loader):
    for_critic.zero_grad()
    made = generator(torch.randn(len(images), 100)).detach()
    d_loss = critic(made).mean() - critic(images).mean()
    d_loss.backward()
    for_critic.step()
    for p in critic.parameters():
        p.data.clamp_(-0.01, 0.01)
    if i % 5 == 0:
        for_generator.zero_grad()
        made = generator(z)
        g_loss = -critic(made).mean()
        g_loss.backward()
        for_generator.step()
"""


def of_several(source: str, forward: str, dtype: str = "bfloat16") -> ChangeText | None:
    """With the line of the first forward pass, and that of the last backward pass."""
    lines = source.split("\n")
    first = next(number for number, text in enumerate(lines, 1) if forward in text)
    last = max(number for number, text in enumerate(lines, 1) if "backward(" in text)
    return autocast_change(source, first, last, "cpu", dtype)


def test_each_of_several_backward_passes_stays_outside() -> None:
    change = of_several(GAN, "generator(z)")
    assert change is not None
    under = '    with torch.autocast("cpu", dtype=torch.bfloat16):'
    assert added(change) == [
        under,
        "        made = generator(z)",
        "        g_loss = bce(critic(made), valid)",
        under,
        "        real_loss = bce(critic(images), valid)",
        "        fake_loss = bce(critic(made.detach()), fake)",
        "        d_loss = (real_loss + fake_loss) / 2",
    ]
    assert change.line == 6
    assert of_several(GAN, "generator(z)", "float16") is None, "one scaler is not enough"


def test_backward_passes_in_other_blocks_get_an_autocast_there() -> None:
    change = of_several(WASSERSTEIN, "made = generator(torch")
    assert change is not None
    assert added(change) == [
        '    with torch.autocast("cpu", dtype=torch.bfloat16):',
        "        made = generator(torch.randn(len(images), 100)).detach()",
        "        d_loss = critic(made).mean() - critic(images).mean()",
        '        with torch.autocast("cpu", dtype=torch.bfloat16):',
        "            made = generator(z)",
        "            g_loss = -critic(made).mean()",
    ]


def test_of_a_step_no_part_alone_gets_an_autocast() -> None:
    """Its critic trains outside of the block in which its generator does."""
    lines = WASSERSTEIN.split("\n")
    generator = next(number for number, text in enumerate(lines, 1) if "made = generator(z)" in text)
    assert autocast_change(WASSERSTEIN, generator, generator + 2, "cpu", "bfloat16") is None


@pytest.mark.parametrize("head", ["if half:", "if one:\n        pass\n    elif half:"])
def test_what_is_done_instead_is_no_other_part_of_a_step(head: str) -> None:
    source = (
        f"import torch\nfor x, y in loader:\n    {head}\n        loss = f(model(x.half()), y)\n"
        "        loss.backward()\n"
        "    else:\n        out = model(x)\n        loss = f(out, y)\n        loss.backward()\n    optimizer.step()\n"
    )
    change = of_several(source, "out = model(x)")
    assert change is not None
    assert added(change)[1:] == ["            out = model(x)", "            loss = f(out, y)"]


@pytest.mark.parametrize(
    "penalty",
    [
        "penalty(critic, images)",
        "grad(real, images, create_graph=True)[0].sum()",
        "torch.autograd.grad(real, images)[0].sum()",
    ],
)
def test_the_taking_of_a_gradient_that_is_a_part_of_the_loss_is_left_to_the_user_in_float16(penalty: str) -> None:
    function = (
        "import torch\n\ndef penalty(critic, images):\n    return torch.autograd.grad(critic(images).sum(), images)\n\n"
    )
    plain = STEP.replace("import torch\n", function)
    source = plain.replace("criterion(out, y)", f"criterion(out, y) + {penalty}")
    assert autocast(plain, "cuda", "float16") is not None
    assert autocast(source, "cuda", "float16") is None
    assert autocast(source) is not None


def test_a_forward_pass_on_the_line_of_one_of_several_backward_passes_is_left_to_the_user() -> None:
    assert of_several(GAN.replace("    g_loss.backward()", "    bce(critic(made), valid).backward()"), "tor(z)") is None
    assert of_several(GAN.replace("    g_loss.backward()", "    g_loss += 1; g_loss.backward()"), "tor(z)") is None


def test_backward_passes_of_which_one_is_made_are_one() -> None:
    either = (
        "if scaled:\n                scaler.scale(loss).backward()\n            else:\n                loss.backward()"
    )
    change = autocast(STEP.replace("loss.backward()  # here", either))
    assert change is not None
    assert added(change)[1:] == ["                out = model(x)", "                loss = criterion(out, y)"]


@pytest.mark.parametrize(
    "source",
    [
        "model(x).sum().backward()\n",
        "out = model(x)\nloss = f(out); loss.backward()\n",
        "def forward(x):\n    return model(x)\n\nloss = forward(x)\nloss.backward()\n",
        "for x in loader:\n    loss += model(x)\nloss.backward()\n",
        "out = model(x\n",
    ],
)
def test_refuses_what_is_not_one_block(source: str) -> None:
    forward, backward = 1, max(1, source.count("\n"))
    for number, text in enumerate(source.split("\n"), 1):
        forward = number if "model(" in text else forward
        backward = number if "backward(" in text else backward
    assert autocast_change(source, forward, backward, "cpu", "bfloat16") is None


IN_FUNCTION = """\
import torch
def compute_loss(model, batch):
    inputs, labels = batch
    # The model.
    with helping():
        logits = model(inputs)
    loss = criterion(logits, labels)
    return loss, logits
for batch in loader:
    loss, _ = compute_loss(model, batch)
    loss.backward()
"""


@pytest.mark.parametrize("backward", [11, None])
def test_wraps_a_function_that_returns_the_loss(backward: int | None) -> None:
    change = autocast_change(IN_FUNCTION, 6, backward, "cpu", "bfloat16")
    assert change is not None
    assert change.edited == IN_FUNCTION.replace(
        """\
    with helping():
        logits = model(inputs)
    loss = criterion(logits, labels)
""",
        """\
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with helping():
            logits = model(inputs)
        loss = criterion(logits, labels)
""",
    )
    assert change.line == 5
    assert autocast_change(IN_FUNCTION, 6, backward, "cpu", "float16") is None, "nothing would scale the loss"


def test_logs_of_a_training_step_stay_outside() -> None:
    """As a step of Lightning has them between its loss and the line that returns it."""
    step = ["x, y = batch", "out = self.net(x)", "loss = f(out, y)", "self.log('loss', loss)", "self.accuracy(out, y)"]
    body = "".join(f"        {line}\n" for line in [*step, "return loss"])
    source = f"import torch\nclass Net:\n    def training_step(self, batch):\n{body}"
    change = autocast_change(source, 5, None, "cpu", "bfloat16")
    assert change is not None
    assert added(change)[1:] == ["            out = self.net(x)", "            loss = f(out, y)"]


def test_what_is_computed_in_the_line_that_returns_the_loss_is_wrapped_too() -> None:
    source = "import torch\ndef loss_of(x, y):\n    out = net(x)\n    return loss_fn(out, y)\n"
    change = autocast_change(source, 3, None, "cpu", "bfloat16")
    assert change is not None
    assert change.edited.endswith(
        '    with torch.autocast("cpu", dtype=torch.bfloat16):\n        out = net(x)\n        return loss_fn(out, y)\n'
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return loss, logits", "return logits"),
        ("return loss, logits", "return loss, (yield logits)"),
        ("return loss, logits", "pass"),
        ("def compute_loss", "async def compute_loss"),
        ("    with helping():", "    for _ in range(3):"),
        ("    loss = criterion(logits, labels)", "    loss = criterion(logits, labels)\n    loss.backward()"),
        ("    loss = criterion(logits, labels)", "    loss = train(logits)\n    optimizer.step()"),
    ],
)
def test_leaves_functions_that_do_more_than_compute_the_loss(old: str, new: str) -> None:
    source = IN_FUNCTION.replace(old, new)
    assert source != IN_FUNCTION
    assert autocast_change(source, 6, None, "cpu", "bfloat16") is None


def test_leaves_a_call_that_trains_inside() -> None:
    """Where a library trains, both passes come from one line of the user's."""
    source = "import torch\ndef main():\n    result = trainer.train()\n    return result.training_loss\n"
    assert autocast_change(source, 3, 3, "cpu", "bfloat16") is None


def test_what_follows_the_loss_and_does_not_use_it_stays_outside() -> None:
    source = """\
import torch
for step in range(9):
    with context:
        logits, loss = model(x, y)
    losses.append(loss)
    total = sum(losses)
    x, y = get_batch("train")
    optimizer.zero_grad()
    total.backward()
"""
    change = autocast_change(source, 4, 9, "cpu", "bfloat16")
    assert change is not None
    inside = change.edited[change.edited.index("autocast") : change.edited.index('    x, y = get_batch("train")')]
    assert "        total = sum(losses)\n" in inside
    assert change.edited.endswith(source[source.index("    x, y = get_batch") :])


def test_a_block_is_indented_as_the_one_around_it_and_not_as_the_first_of_the_file() -> None:
    source = (
        "import torch\n\ndef first():\n   return 1\n\ndef train(model, rows, optimizer):\n"
        "    loss = model(rows).sum()\n    loss.backward()\n    optimizer.step()\n"
    )
    change = autocast_change(source, 7, 8, "cpu", "bfloat16")
    assert change is not None
    assert '\n    with torch.autocast("cpu", dtype=torch.bfloat16):\n        loss = model(' in change.edited
