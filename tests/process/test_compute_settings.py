"""How the main process computes (layout, precision, threads), changed in a living loop and as it was behind it."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP, PRELUDE, Guest, Setting, run_plain

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.knobs import checkpointing
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process

PICTURES = (
    PRELUDE
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        out = self.conv(images)
        order = [images.stride()[1], self.conv.weight.stride()[1], out.stride()[1]]
        note("steps", [order, torch.get_float32_matmul_precision(), torch.get_num_threads()])
        return self.head(FLATTEN.relu())


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = TensorDataset(torch.rand(64, 3, 8, 8), torch.randint(0, 4, (64,)))
loader = DataLoader(data, batch_size=8)
for epoch in range(4):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
buffer = optimizer.state[model.conv.weight]["momentum_buffer"]
note("left", [model.conv.weight.is_contiguous(), buffer.is_contiguous(), bool(torch.isfinite(buffer).all())])
"""
)
POOLED, VIEWED = "out.mean((2, 3))", "out.view(8, -1)[:, :8]"


def test_each_holds_in_its_window_and_nowhere_else(guest: StartGuest) -> None:
    script = guest(PICTURES.replace("FLATTEN", POOLED))
    found = script.found()
    assert found.facts["channels_last"] == {"weights": 1, "contiguous": 1, "channels_last": 0, "obstacle": ""}
    assert found.facts["float32_precision"]["matrices"] is True
    settings: list[Setting] = [{"channels_last": True}, {"float32_precision": "high"}, {"intra_op_threads": 2}]
    spans = []
    for setting in settings:
        begun = len(script.notes("steps"))
        done = script.window(setting, lead_in=2, steps=3)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        spans.append((begun, len(script.notes("steps"))))
        assert script.window(steps=1).status == "ok"
    assert script.run_out().code == 0
    steps = script.notes("steps")
    assert len(steps) == 32
    as_written = [[64, 9, 64], "highest", 1]
    under = [[[1, 1, 1], "highest", 1], [[64, 9, 64], "high", 1], [[64, 9, 64], "highest", 2]]
    expected = [as_written] * len(steps)
    for (begun, ended), each in zip(spans, under, strict=True):
        expected[begun:ended] = [each] * (ended - begun)
    assert steps == expected
    assert script.notes("left") == [[True, True, True]]


def test_a_model_that_takes_one_layout_only_ends_in_its_window(guest: StartGuest) -> None:
    """A known limit: `view` of what lies the other way is an error in the model itself, which says what to write."""
    script = guest(PICTURES.replace("FLATTEN", VIEWED))
    script.found()
    assert script.window(steps=2).status == "ok"
    script.grant({"channels_last": True})
    event = script.event()
    assert not isinstance(event, messages.WindowDone)
    assert "Use .reshape(...) instead" in script.session.tail()


UNDER_AUTOCAST = (
    PRELUDE
    + """
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.randint(0, 4, (64,))), batch_size=8)
scaler = torch.amp.GradScaler("cpu", enabled=SCALED)
for epoch in range(4):
    for rows, labels in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            answers = model(rows)
            loss = nn.functional.cross_entropy(answers, labels)
        note("steps", str(answers.dtype))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""
)


@pytest.mark.parametrize("scaled", [pytest.param(False, marks=pytest.mark.slow(together=True)), True])
def test_the_users_autocast_is_off_in_its_window_and_nowhere_else(guest: StartGuest, scaled: bool) -> None:
    script = guest(UNDER_AUTOCAST.replace("SCALED", str(scaled)))
    found = script.found()
    assert (found.autocast, found.obstacles["no_autocast"]) == ("bfloat16", "")
    begun = len(script.notes("steps"))
    done = script.window({"no_autocast": True}, lead_in=2, steps=3)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"no_autocast": True})
    ended = len(script.notes("steps"))
    assert script.run_out().code == 0
    steps = script.notes("steps")
    assert steps[begun:ended] == ["torch.float32"] * (ended - begun)
    assert set(steps[:begun] + steps[ended:]) == {"torch.bfloat16"}


EVALUATED = (
    PRELUDE
    + """
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.randint(0, 4, (64,))), batch_size=8)
others = DataLoader(TensorDataset(torch.rand(16, 4)), batch_size=8)


def evaluate():
    for (rows,) in others:
        model(rows).data.numpy()  # Gradients are on, and NumPy has no bfloat16.


for epoch in range(16):
    for place, (rows, labels) in enumerate(loader):
        answers = model(rows)
        note("steps", str(answers.dtype))
        loss = nn.functional.cross_entropy(answers.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if place == 4:
            evaluate()
    model(rows).data.numpy()
    note("evaluated", epoch)
"""
)


def test_an_evaluation_inside_of_a_window_is_not_under_autocast(guest: StartGuest) -> None:
    script = guest(EVALUATED)
    script.found()
    begun = len(script.notes("steps"))
    done = script.window({"autocast": "bfloat16"}, lead_in=2, steps=14)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"autocast": True})
    ended = len(script.notes("steps"))
    whole = script.window({"autocast": "bfloat16"}, epochs=1)
    assert (whole.status, whole.reason) == ("ok", "")
    assert script.run_out().code == 0
    assert set(script.notes("steps")[begun : ended - 1]) == {"torch.bfloat16"}
    assert script.notes("evaluated") == list(range(16))


COMPILED = (
    PRELUDE
    + """
ran = []


def backend(graph, inputs):
    note("compiled", 1)

    def run(*inputs):
        ran.append(1)
        return graph.forward(*inputs)

    return run


model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.randint(0, 4, (64,))), batch_size=8)
fast = COMPILE
for epoch in range(8):
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(fast(rows), labels).backward()
        optimizer.step()
        note("steps", len(ran))
        ran.clear()
"""
)


@pytest.mark.parametrize(
    "compiled",
    [
        "torch.compile(model, backend=backend)",
        pytest.param("(model.compile(backend=backend), model)[1]", marks=pytest.mark.slow(together=True)),
        pytest.param(
            "torch.compile(lambda rows: model(rows).relu(), backend=backend)", marks=pytest.mark.slow(together=True)
        ),
    ],
)
def test_what_is_compiled_is_not_in_its_window_and_nowhere_else(guest: StartGuest, compiled: str) -> None:
    script = guest(COMPILED.replace("COMPILE", compiled))
    if not hasattr(torch.compiler, "set_stance"):
        assert "torch 2.6" in script.found().obstacles["uncompiled"]
        return
    assert script.found().obstacles["uncompiled"] == ""
    # What was seen before the loop was found may be compiled once more, since nothing watches the model by now.
    assert script.window(steps=2).status == "ok"
    compiled_before = len(script.notes("compiled"))
    spans = []
    for _ in range(2):
        begun = len(script.notes("steps"))
        done = script.window({"uncompiled": True}, lead_in=2, steps=3)
        assert (done.status, done.reason, done.effect) == ("ok", "", {"uncompiled": True})
        spans.append(range(begun, len(script.notes("steps"))))
        assert script.window(steps=2).status == "ok"
    assert script.run_out().code == 0
    steps = script.notes("steps")
    assert len(steps) == 64
    assert [bool(ran) for ran in steps] == [not any(step in span for span in spans) for step in range(64)]
    assert len(script.notes("compiled")) == compiled_before, "nothing is compiled again behind such a window"


CHANGING = (
    PRELUDE
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, rows):
        return self.inner(rows).relu()


model = Net()
fast = torch.compile(model, backend="eager", dynamic=DYNAMIC)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(400, 4), torch.randint(0, 4, (400,))), batch_size=20)
for epoch in range(4):
    for number, (rows, labels) in enumerate(loader):
        rows, labels = rows[: 2 + number % 15], labels[: 2 + number % 15]
        optimizer.zero_grad()
        nn.functional.cross_entropy(fast(rows), labels).backward()
        optimizer.step()
"""
)


@pytest.mark.parametrize(("dynamic", "times"), [("False", range(3, 9)), ("None", range(1, 3))])
def test_what_is_compiled_again_is_known_with_its_reason(guest: StartGuest, dynamic: str, times: range) -> None:
    facts = guest(CHANGING.replace("DYNAMIC", dynamic)).found().facts["uncompiled"]
    (again,) = facts["recompiled"]
    assert again["times"] in times
    assert facts["most_versions"] == 8
    assert "size mismatch at index 0" in again["reason"]
    assert (again["name"].endswith("forward"), Path(again["file"]).name) == (True, "train.py")


def test_where_nothing_is_compiled_there_is_nothing_to_leave_out(guest: StartGuest) -> None:
    script = guest(COMPILED.replace("COMPILE", "model"))
    assert script.found().obstacles["uncompiled"] == "already on: nothing of the training is compiled"
    assert script.run_out().code == 0


COMPILABLE = (
    PRELUDE
    + """
model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(ROWS, 4), torch.randint(0, 4, (ROWS,))), batch_size=8)
for epoch in range(100000):
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        note("steps", [model._compiled_call_impl is not None, torch.distributions.Distribution._validate_args])
"""
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles with a C++ compiler, and there is none")
def test_the_model_is_compiled_in_its_windows_and_nowhere_else(guest: StartGuest) -> None:
    """When torch first compiles something in a process, distributions no longer check their values, also in steps that
    are not compiled."""
    script = guest(COMPILABLE.replace("ROWS", "64000"))
    assert script.found().obstacles["compiled"] == ""
    for value in (True, "reduce-overhead", True):
        begun = len(script.notes("steps"))
        done = script.window({"compiled": value}, lead_in=3, steps=5)
        assert (done.status, done.reason, done.effect) == ("ok", "", {"compiled": True})
        assert done.seconds < 1.0, "compiling is no part of what is timed"
        assert script.notes("steps")[begun + 1 :] == [[True, False]] * (len(script.notes("steps")) - begun - 1)
        begun = len(script.notes("steps"))
        assert script.window(steps=5).status == "ok"
        assert script.notes("steps")[begun + 1 :] == [[False, True]] * (len(script.notes("steps")) - begun - 1)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles with a C++ compiler, and there is none")
def test_a_window_in_which_torch_compiles_again_has_failed(guest: StartGuest) -> None:
    script = guest(COMPILABLE.replace("ROWS", "164"))
    script.found()
    done = script.window({"compiled": True}, lead_in=2, steps=40)
    assert done.status == "failed"
    assert "because a batch had another shape" in done.reason


CHECKPOINTED = (
    PRELUDE
    + """
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, rows):
        note("computed", 1)
        return self.layer(nn.functional.dropout(rows, 0.5))


block, head = Block(), nn.Linear(4, 4)
model = nn.ModuleList([block, head])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.randint(0, 4, (64,))), batch_size=8)
for epoch in range(4):
    for rows, labels in loader:
        rows.requires_grad_()
        out = head(checkpoint(block, rows, use_reentrant=REENTRANT))
        optimizer.zero_grad()
        nn.functional.cross_entropy(out, labels).backward()
        optimizer.step()
note("weights", [each.flatten().tolist() for each in model.parameters()])
"""
)


@pytest.mark.parametrize("reentrant", [False, pytest.param(True, marks=pytest.mark.slow(together=True))])
def test_activations_are_kept_in_its_window_and_training_learns_the_same(
    guest: StartGuest, tmp_path: Path, reentrant: bool
) -> None:
    text = CHECKPOINTED.replace("REENTRANT", str(reentrant))
    script = guest(text)
    found = script.found()
    assert found.facts["checkpointing"]["count"] >= 1
    ((_, site),) = checkpointing.calls(found)
    assert "head(checkpoint(block, rows" in Path(site.file).read_text().splitlines()[site.line - 1]
    (change,) = changes_for({"checkpointing": False}, found)
    assert "+        out = head(block(rows))" in change.diff
    begun = len(script.notes("computed"))
    done = script.window({"checkpointing": False}, lead_in=2, steps=6)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"checkpointing": True})
    assert len(script.notes("computed")) - begun in (7, 8), "once a step; the last step's end is not waited for"
    begun = len(script.notes("computed"))
    assert script.window(steps=4).status == "ok"
    assert len(script.notes("computed")) - begun >= 2 * 4
    assert script.run_out().code == 0
    (weights,) = script.notes("weights")
    (tmp_path / "weights").unlink()
    assert run_plain(["train.py"], tmp_path).code == 0
    assert script.notes("weights") == [weights]


ATTENDING = (
    PRELUDE
    + """
kernels = 0
kernel = nn.functional.scaled_dot_product_attention


def counted(*args, **kwargs):
    global kernels
    kernels += 1
    return kernel(*args, **kwargs)


nn.functional.scaled_dot_product_attention = counted


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.shown = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, rows):
        rows = rows + self.attention(rows, rows, rows)[0]
        rows, weights = self.shown(rows, rows, rows)
        note("shown", list(weights.shape))
        return self.head(rows.mean(1))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 6, 8), torch.randint(0, 4, (64,))), batch_size=8)
for epoch in range(4):
    for rows, labels in loader:
        before = kernels
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        note("kernels", kernels - before)
"""
)


def one_kernel_in_its_window_alone(script: Guest, knob: str, value: SettingValue) -> None:
    """Torch's attention is called once a step in a window of the knob, and in no step before and behind it."""
    assert noted_around_its_window(script, "kernels", knob, value) == [{0}, {1}, {0}]


def noted_around_its_window(script: Guest, name: str, knob: str, value: SettingValue) -> list[set[Any]]:
    """What the script notes in each step before a window of the knob, in it, and behind it."""
    begun = len(script.notes(name))
    done = script.window({knob: value}, lead_in=2, steps=6)
    assert (done.status, done.reason, done.effect) == ("ok", "", {knob: True})
    ended = len(script.notes(name))
    assert script.window(steps=4).status == "ok"
    assert script.run_out().code == 0
    seen = script.notes(name)
    return [set(seen[:begun]), set(seen[begun:ended]), set(seen[ended:])]


def test_attention_weights_are_left_out_in_their_window_alone_and_where_nothing_reads_them(guest: StartGuest) -> None:
    script = guest(ATTENDING)
    found = script.found()
    ((name, _, line),) = found.facts["attention_weights"]["calls"]
    assert (name, ATTENDING.splitlines()[line - 1].count("self.attention(")) == ("attention", 1)
    (change,) = changes_for({"attention_weights": False}, found)
    assert [each for each in change.diff.splitlines() if each.startswith(("+", "-"))] == [
        "-        rows = rows + self.attention(rows, rows, rows)[0]",
        "+        rows = rows + self.attention(rows, rows, rows, need_weights=False)[0]",
    ]
    one_kernel_in_its_window_alone(script, "attention_weights", False)
    assert {tuple(each) for each in script.notes("shown")} == {(8, 6, 6)}


DROPPING = (
    PRELUDE
    + """
plain = nn.functional.dropout
model = nn.Sequential(nn.Dropout(0.5), nn.Linear(1024, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 1024), torch.randint(0, 4, (64,))), batch_size=8)
for epoch in range(4):
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        note("plain", nn.functional.dropout is plain)
"""
)


def test_dropout_draws_fewer_bits_in_its_window_alone(guest: StartGuest) -> None:
    script = guest(DROPPING)
    found = script.found()
    assert found.facts["quick_dropout"] == {"obstacle": "", "attention": False}
    (change,) = changes_for({"quick_dropout": True}, found)
    assert "+torch.nn.functional.dropout = quick_dropout" in change.diff
    assert noted_around_its_window(script, "plain", "quick_dropout", True) == [{True}, {False}, {True}]


DISTRIBUTED = (
    PRELUDE
    + """
from torch.distributions import Categorical, Distribution
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.rand(64, 16), torch.randint(0, 4, (64,))), batch_size=8)
for epoch in range(4):
    for rows, labels in loader:
        optimizer.zero_grad()
        chances = Categorical(logits=model(rows))
        (-chances.log_prob(labels).mean()).backward()
        optimizer.step()
        try:
            chances.log_prob(torch.full((8,), 0.5))
        except ValueError:
            note("checked", True)
        else:
            note("checked", False)
"""
)


def test_distributions_check_no_values_in_their_window_alone(guest: StartGuest) -> None:
    script = guest(DISTRIBUTED)
    found = script.found()
    assert found.facts["distribution_checks"] == {"obstacle": ""}
    (change,) = changes_for({"distribution_checks": False}, found)
    assert "+torch.distributions.Distribution.set_default_validate_args(False)" in change.diff
    assert noted_around_its_window(script, "checked", "distribution_checks", False) == [{True}, {False}, {True}]


VANISHING = (
    PRELUDE
    + """
torch.set_num_threads(2)
small, one = torch.full((1 << 18,), 1e-40), torch.ones(1)
model = nn.Sequential(nn.Linear(64, 4))
model[0].weight.data[:2] = 1e-40
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
loader = DataLoader(TensorDataset(torch.rand(64, 64), torch.randint(0, 4, (64,))), batch_size=8)
for epoch in range(4):
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        note("taken as 0", (small * one == 0).float().mean().item())
"""
)


def test_numbers_next_to_0_are_taken_as_0_in_their_window_alone(guest: StartGuest) -> None:
    script = guest(VANISHING)
    found = script.found()
    if "no such mode" in found.facts["flush_denormal"]["obstacle"]:
        pytest.skip("this processor computes with denormal numbers only")
    assert found.facts["flush_denormal"] == {"obstacle": "", "places": ["the weights"]}
    (change,) = changes_for({"flush_denormal": True}, found)
    assert "+torch.set_flush_denormal(True)" in change.diff
    assert noted_around_its_window(script, "taken as 0", "flush_denormal", True) == [{0.0}, {1.0}, {0.0}]


LARGE = (
    "import resource\n"
    + PRELUDE
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 32)

    def forward(self, rows):
        return torch.tanh(self.head(rows.repeat(40000, 1)))  # Blocks of 41 MB: glibc asks the kernel for each.


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
loader = DataLoader(torch.rand(64, 8), batch_size=8)
told = []


def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


asked = pages()
for epoch in range(8):
    for rows in loader:
        optimizer.zero_grad()
        model(rows).mean().backward()
        optimizer.step()
        told.append([0.5] * 100)  # Small blocks that stay, among the large ones.
        note("pages", pages() - asked)
        asked = pages()
"""
)


def test_large_blocks_are_kept_in_their_window_alone(guest: StartGuest) -> None:
    """Also behind it, a step asks for as many pages as before: what was kept must make no window as written faster."""
    script = guest(LARGE)
    found = script.found()
    assert found.facts["kept_memory"] == {"obstacle": ""}
    (change,) = changes_for({"kept_memory": True}, found)
    assert "MALLOC_MMAP_THRESHOLD_=1073741824" in change.note
    spans = []
    for setting in ({}, {"kept_memory": True}, {}, {"kept_memory": True}, {}):
        begun = len(script.notes("pages"))
        done = script.window(setting, lead_in=2, steps=6)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        spans.append(median(script.notes("pages")[begun + 2 :]))
    assert script.run_out().code == 0
    before, *others = spans
    assert before > 10000
    assert [others[0] < 0.3 * before, others[2] < 0.3 * before] == [True, True]
    assert others[1::2] == pytest.approx([before, before], rel=0.1)


IN_DOUBLE = (
    PRELUDE
    + """
model = nn.Linear(64, 4).double()
optimizer = torch.optim.Adam(model.parameters())
table = torch.rand(64, 64, dtype=torch.float64)
loader = DataLoader(TensorDataset(table, table[:, :4]), batch_size=8)
for epoch in range(4):
    for rows, wanted in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(rows), wanted).backward()
        optimizer.step()
        kinds = {each.dtype for each in (*model.parameters(), optimizer.state[model.weight]["exp_avg"])}
        note("bits", sum(torch.finfo(each).bits for each in kinds))
"""
)


def test_a_model_in_double_precision_is_in_single_in_its_window_alone(guest: StartGuest) -> None:
    script = guest(IN_DOUBLE)
    found = script.found()
    assert found.obstacles["single_precision"] == ""
    (change,) = changes_for({"single_precision": True}, found)
    assert ".float()" in change.note
    assert noted_around_its_window(script, "bits", "single_precision", True) == [{64}, {32}, {64}]


WRITTEN_OUT = (
    ATTENDING[: ATTENDING.index("class Net")]
    + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, rows):
        q = k = v = self.inputs(rows).view(8, 6, 2, 4).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / 2).softmax(-1)
        return self.head((weights @ v).transpose(1, 2).reshape(8, 6, 8).mean(1))


"""
    + ATTENDING[ATTENDING.index("model = Net()") :]
)


def test_attention_is_fused_in_its_window_alone_and_its_line_is_named(guest: StartGuest) -> None:
    script = guest(WRITTEN_OUT)
    found = script.found()
    (change,) = changes_for({"fused_attention": True}, found)
    assert "softmax(-1)" in WRITTEN_OUT.splitlines()[change.line - 1]
    assert [each.strip() for each in change.diff.splitlines() if each.startswith(("+", "-"))] == [
        "-        weights = (q @ k.transpose(-2, -1) / 2).softmax(-1)",
        "-        return self.head((weights @ v).transpose(1, 2).reshape(8, 6, 8).mean(1))",
        "+        return self.head(nn.functional.scaled_dot_product_attention(q, k, v, scale=1 / 2)"
        ".transpose(1, 2).reshape(8, 6, 8).mean(1))",
    ]
    one_kernel_in_its_window_alone(script, "fused_attention", True)


def test_a_library_that_sets_the_threads_when_training_begins_is_named(guest: StartGuest, tmp_path: Path) -> None:
    """Then a call at the top of the script is undone by it, as by YOLO's. A call at its import is not."""
    for name in ("early", "late"):
        library = tmp_path / "site-packages" / f"{name}_library.py"
        library.parent.mkdir(exist_ok=True)
        body = "import torch\n\n\ndef begin():\n    torch.set_num_threads(1)\n"
        library.write_text(body if name == "late" else f"{body}\n\nbegin()\n", encoding="utf-8")
    source = f"import sys\nsys.path.insert(0, {str(tmp_path / 'site-packages')!r})\nimport early_library\n{LOOP}"
    wanted: dict[str, SettingValue] = {"intra_op_threads": 2}
    early = guest(source).found()
    threads = early.facts["intra_op_threads"]
    assert threads["set_by"] is None
    assert "torch.set_num_threads(1)" in source.splitlines()[threads["written"]["line"] - 1], "the script's own call"
    (change,) = changes_for(wanted, early)
    assert "+torch.set_num_threads(2)" in change.diff
    late = guest(source.replace("for epoch in", "import late_library\nlate_library.begin()\nfor epoch in")).found()
    (change,) = changes_for(wanted, late)
    assert change.diff == ""
    assert "`late_library.py` sets it, too (line 5)" in change.note
