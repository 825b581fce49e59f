"""Edits of sources in every layout, and of sources that are broken in every way: never an exception, never a program
that Python does not read, and a diff that leads there and back."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.unit.call_sites import SITES
from tests.unit.test_call_sites import files_of, patched

from bottleneck_doctor.edits.attention_call import attention_change
from bottleneck_doctor.edits.autocast_block import autocast_change
from bottleneck_doctor.edits.before_loop import before_loop_change
from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.edits.copied_ahead import copied_ahead_change
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.direct_call import direct_call_change
from bottleneck_doctor.edits.given_argument import given_argument_change
from bottleneck_doctor.edits.grouped_rows import grouped_rows_change
from bottleneck_doctor.edits.listed_samples import listed_samples_change
from bottleneck_doctor.edits.loader_call import loader_change
from bottleneck_doctor.edits.memory_format import memory_format_change
from bottleneck_doctor.edits.named_call import named_change
from bottleneck_doctor.edits.of_model import of_model_change
from bottleneck_doctor.edits.origin.document import node_at, replaced
from bottleneck_doctor.edits.own_function import own_function_change
from bottleneck_doctor.edits.recorded_value import recorded_value_change
from bottleneck_doctor.edits.reduced_pictures import reduced_pictures_change
from bottleneck_doctor.edits.removal import removal_change
from bottleneck_doctor.edits.switch import switches_change
from bottleneck_doctor.edits.whole_batches import whole_batches_change
from bottleneck_doctor.knobs import Argument, GivenArgument, SmallerPictures, Switch

SLOW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])

# -- layouts -----------------------------------------------------------------------------------------------------------

GAPS = st.sampled_from(["", " ", "\n", "\n        ", "  # a, (b\n", "\n\n  # é\n    ", "\t", " \\\n  "])
ARGUMENTS = st.lists(
    st.sampled_from(
        [
            "batch_size=4",
            "shuffle = True",
            "num_workers=0",
            "num_workers=(1)",
            "num_workers=N",
            "num_workers=args.workers",
            "num_workers=CFG['n']",
            "num_workers=min(3, 2)",
            "pin_memory=(\n  False  # slow\n)",
            "collate_fn=lambda a, *b, c=(1, 2): {a: b}",
            "collate_fn=f'{1!r:>{2}}, (' f\"é\"",
            "sampler=[[1, 2][0], {3: (4,)}[3]]",
            "drop_last=not True",
            "**{'timeout': 3}",
            "**OPTIONS",
        ]
    ),
    unique_by=lambda argument: argument.split("=")[0].strip(),
    max_size=5,
)
AROUND = st.sampled_from(
    [
        "{call}",
        "if 1:\n    x = {call}  # why",
        "def f():\n\t'''a\n  b'''\n\treturn {call}\nf()",
        "class A:\n  def f(self): return {call}\nA().f()",
        "for i in range(1):\n    if i == 0: x = 3; {call}; y = 2",
        "with open(__file__) if 0 else memoryview(b'') as é: x = [{call}]",
        "x = \\\n  {call}",
        "x = (\n  {call}\n  # end\n)",
        "try:\n    pass\nfinally:\n    {call}",
        "print(len([{call},]), end='')",
        "@(lambda f: f)\ndef g(a=1, /, *, b=2):\n    return {call}\ng()",
    ]
)
BEFORE = """\
import argparse
parser = argparse.ArgumentParser(){gap}
parser.add_argument('--workers',{gap}default=1{gap})
args = parser.parse_args([])
N = 1;  M = 2
CFG = {{'n':{gap}1, 'm': [1, 2]}}
OPTIONS = {{}}
OPTIONS['prefetch_factor'] = 2
"""
SETTINGS = st.fixed_dictionaries(
    {"num_workers": st.integers(1, 9)},
    optional={
        "persistent_workers": st.booleans(),
        "pin_memory": st.booleans(),
        "multiprocessing_context": st.just("fork"),
    },
)
DEFAULTS = {"num_workers": 0, "persistent_workers": False, "pin_memory": False, "multiprocessing_context": None}


def made_by(source: str) -> dict[str, Any]:
    """The arguments of the loader that a program makes last."""
    made: list[dict[str, Any]] = []

    def loader(data: object, **given: Any) -> int:
        made.append(given)
        return len(made)

    exec(compile(source, __file__, "exec"), {"DataLoader": loader, "data": 0, "__file__": __file__})
    return made[-1]


@SLOW
@given(
    arguments=ARGUMENTS,
    gaps=st.lists(GAPS, min_size=12, max_size=12),
    around=AROUND,
    before=st.sampled_from(["", "in brackets"]),
    trailing=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    wanted=SETTINGS,
)
def test_any_layout_gets_what_is_wanted(
    arguments: list[str],
    gaps: list[str],
    around: str,
    before: str,
    trailing: bool,
    newline: str,
    mark: bool,
    wanted: dict[str, Any],
) -> None:
    parts = ["data", *arguments]
    inner = ""
    for number, part in enumerate(parts):
        inner += gaps[number] + part + (gaps[number + 5] if number % 2 else "")
        inner += "," if trailing or part is not parts[-1] else ""
    call = f"DataLoader({inner}{gaps[-1]})"
    source = BEFORE.format(gap=gaps[-2] if before else "") + around.format(call=call) + "\n"
    # None where a line goes on after a backslash, or white space stands where there must be none.
    assume(_is_program(source))
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    source = ("\ufeff" if mark else "") + source.replace("\n", newline)
    change = loader_change(source, line, wanted)
    assert change is not None
    text = source.removeprefix("\ufeff")
    if not change.diff:
        had = DEFAULTS | made_by(text)
        assert change.note
        assert {name: had[name] for name in wanted} == wanted or "in this call" in change.note
        return
    _there_and_back(source, change)
    got = DEFAULTS | made_by(change.edited.removeprefix("\ufeff"))
    assert {name: got[name] for name in wanted} == wanted
    rest = {name: value for name, value in made_by(text).items() if name not in wanted and not callable(value)}
    assert {name: got[name] for name in rest} == rest
    assert change.edited.count("#") == source.count("#")


def _is_program(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _there_and_back(source: str, change: ChangeText) -> None:
    """The diff makes of the source what `edited` is, and the other way round; line ends and the mark stay."""
    assert change.edited.startswith("\ufeff") == source.startswith("\ufeff")
    assert change.edited.count("\r\n") == (change.edited.count("\n") if "\r\n" in source else 0)
    before, after = source.replace("\r\n", "\n"), change.edited.replace("\r\n", "\n")
    assert patched(before, change.diff) == after
    swap = str.maketrans("+-", "-+")
    lines = change.diff.split("\n")
    back = [_turned(line) if line.startswith("@@") else line[:1].translate(swap) + line[1:] for line in lines]
    assert patched(after, "\n".join(back)) == before
    ast.parse(change.edited.removeprefix("\ufeff"))


def _turned(head: str) -> str:
    _, old, new, _ = head.split(" ")
    return f"@@ -{new[1:]} +{old[1:]} @@"


# -- damage ------------------------------------------------------------------------------------------------------------

STEP = """\
import gc
import torch as t
from torch.utils.data import DataLoader

def main(model, optimizer):
    loader = DataLoader(data, 4, shuffle=True)
    for x, y in loader:
        out = model(x)
        loss = f(out, y)
        optimizer.zero_grad()
        loss.backward()  # here
        clip_grad_norm_(p, 1)
        optimizer.step()
        if y % 3 == 0:
            gc.collect()
    t.set_num_threads(3)
    Trainer(light=True)
optimizer = AdamW(net.parameters(), foreach=True)
"""
ATTENTION = """\
import torch as t
def attend(self, x, mask):
    q, k, v = x
    s = q @ k.transpose(-2, -1) / 8  # scores
    s = s.masked_fill(mask == 0, -1e9)
    w = self.drop(s.softmax(-1))
    out = t.matmul(w, v)
    y, _ = self.attention(x, x,
        x)
    return out + y
"""
PICTURES = """\
class Pictures:
\tdef get(self, file):
\t\twith Image.open(  # JPEG
\t\t\tfile) as image: x = image.convert("RGB")
\t\ty = cv2.imread(str(file),
\t\t\tcv2.IMREAD_COLOR)  # as well
\t\treturn x, y
"""
CHECKPOINTED = """\
def forward(self, x):
\tfor layer in self.layers:
\t\tx = x + checkpoint(layer, x, use_reentrant=False)
\treturn checkpoint(lambda y: self.head(y),
\t\tx, use_reentrant=True,  # as before
\t)
"""
SOURCES = [
    STEP,
    ATTENTION,
    PICTURES,
    CHECKPOINTED,
    *(text for site in SITES for text in files_of(site.program).values()),
]
LAMP = Switch("lamp({value})", calls=("lamp",), arguments=("light",), attribute="lamp.on", contexts=("lit",))
FUSED = Argument("fused=True", "pass it", ("AdamW",), (("fused", True),), {"foreach": None})
BUCKETS = Argument("cap={value}", "pass {value}", ("AdamW",), takes_value="cap").under(5)
OFF = Argument("off", "leave it out", ("autocast",), (("enabled", False),), of=("torch", "amp"))
GIVEN = GivenArgument("need_weights", False, position=4, calls=lambda found: ())
QUICK = (
    "def quick(values, p=0.5, dropout=torch.nn.functional.dropout):\n    return dropout(values, p)\n",
    "torch.nn.functional.dropout = quick",
)
SMALLER = SmallerPictures("Pillow", 60, 8, ())
GONE = {"prefetch_factor": None, "timeout": 0}
EDITS: dict[str, Callable[[str, int], Any]] = {
    "loader": lambda text, line: loader_change(text, line, {"num_workers": 4}),
    "no workers": lambda text, line: loader_change(text, line, {"num_workers": 0}, GONE),
    "bfloat16": lambda text, line: autocast_change(text, line, line + 3, "cpu", "bfloat16"),
    "float16": lambda text, line: autocast_change(text, line, line + 2, "cuda", "float16"),
    "format": lambda text, line: memory_format_change(text, line, "channels_last"),
    "of model": lambda text, line: of_model_change(text, line, "compile()"),
    "loop": lambda text, line: before_loop_change(text, line, ["gc.freeze()"], "gc"),
    "removal": lambda text, line: removal_change(text, [("gc.collect", line)]),
    "switch": lambda text, line: getattr(switches_change(text, {LAMP: False}), "text", None),
    "whole": whole_batches_change,
    "listed": listed_samples_change,
    "grouped": lambda text, line: grouped_rows_change(text, line, '["ids"]'),
    "call": lambda text, line: call_change(text, "torch.set_num_threads(1)"),
    "function": lambda text, line: own_function_change(text, "quick", QUICK),
    "named": lambda text, line: named_change(text, FUSED),
    "off": lambda text, line: named_change(text, OFF),
    "valued": lambda text, line: named_change(text, BUCKETS),
    "attention": attention_change,
    "recorded value": recorded_value_change,
    "copied ahead": copied_ahead_change,
    "direct": lambda text, line: direct_call_change(text, [("checkpoint", line)], ("use_reentrant",)),
    "argument": lambda text, line: given_argument_change(text, [("attention", line)], GIVEN),
    "smaller": lambda text, line: reduced_pictures_change(text, [("open", line)], SMALLER),
    "flagged": lambda text, line: reduced_pictures_change(text, [("imread", line)], SMALLER),
}


@SLOW
@given(
    source=st.sampled_from(SOURCES),
    name=st.sampled_from(sorted(EDITS)),
    line=st.integers(-1, 25),
    damage=st.lists(
        st.tuples(
            st.integers(0, 1200),
            st.integers(0, 3),
            st.text("()[]{}'\"\\\n\r\t #,:=*.\x00\x0c\ud800é", max_size=3)
            | st.sampled_from(["", "\ufeff", "lambda: ", "**", "await ", "match x:\n case 1: ", "f'{", "import *\n"]),
        ),
        max_size=3,
    ),
)
@example(ATTENTION, "attention", 6, [])
@example(ATTENTION, "argument", 8, [])
@example(CHECKPOINTED, "direct", 3, [])
@example(CHECKPOINTED, "direct", 4, [])
@example(PICTURES, "smaller", 3, [])
@example(PICTURES, "flagged", 5, [])
@example("(" * 3000 + ")" * 3000, "loader", 1, [])
@example("x = " + "-" * 5000 + "1\nDataLoader(x)\n", "loader", 2, [])
@example("x = " + "[" * 150 + "]" * 150 + "\nDataLoader(x)\n", "loader", 2, [])
@example("print 'x'\nDataLoader(d)\n", "loader", 2, [])
@example("x = 1\x0c\n\x0cy = DataLoader(d)\n", "loader", 2, [])
@example("x = 1\rDataLoader(d)\n", "loader", 1, [])
@example("", "call", 1, [])
@example("# nothing", "call", 1, [])
@example("from __future__ import annotations\n", "call", 1, [])
def test_broken_sources_never_break_an_edit(
    source: str, name: str, line: int, damage: list[tuple[int, int, str]]
) -> None:
    for place, gone, new in damage:
        source = source[:place] + new + source[place + gone :]
    change = EDITS[name](source, line)
    if change is not None and change.diff:
        assert "\r" not in source.replace("\r\n", "")
        ast.parse(change.edited.removeprefix("\ufeff"))
        before, after = source.replace("\r\n", "\n"), change.edited.replace("\r\n", "\n")
        assert patched(before, change.diff).rstrip("\n") == after.rstrip("\n")


# -- configuration files -----------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["n", "data", "num workers", "é", "yes", "1"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 99) | st.text("ab: #'\"\n-é", max_size=6) | st.floats(-9, 9)
TREES = st.recursive(
    SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3), max_leaves=8
)


@SLOW
@given(
    tree=st.dictionaries(KEYS, TREES, min_size=1, max_size=4),
    value=st.booleans() | st.integers(0, 99) | st.none(),
    flow=st.sampled_from([None, True, False]),
    quoted=st.sampled_from([None, '"', "'"]),
    data=st.data(),
)
def test_one_scalar_of_a_document_changes_and_nothing_else(
    tree: dict[str, Any], value: object, flow: bool | None, quoted: str | None, data: st.DataObject
) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, default_style=quoted, allow_unicode=True)
    paths = _paths(tree)
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    node = node_at(text, path)
    assert isinstance(node, yaml.ScalarNode)
    after = replaced(text, node, path, value)
    if after is None:
        return
    expected = yaml.safe_load(text)
    part = expected
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert yaml.safe_load(after) == expected


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(tree, dict):
        return [each for key, inner in tree.items() for each in _paths(inner, (*path, key))]
    if isinstance(tree, list):
        return [each for key, inner in enumerate(tree) for each in _paths(inner, (*path, key))]
    return [path]


@SLOW
@given(st.text("{}[]:,-\n\t \"'#&*!|>%@`a1", max_size=40), st.sampled_from([("a",), ("a", 0), ()]))
def test_any_text_has_a_node_or_none(text: str, keys: tuple[Any, ...]) -> None:
    node_at(text, keys)


@pytest.mark.parametrize(
    "text", ["a: 1\r\nb: 2\r\n", "\ufeffa: 1\n", '{\n\t"a": 1\n}\n', "a:\nb: 2\n", "a: &x 1\nb: *x\n"]
)
def test_a_document_keeps_what_it_looks_like(text: str) -> None:
    node = node_at(text, ("a",))
    assert isinstance(node, yaml.ScalarNode)
    after = replaced(text, node, ("a",), 4)
    assert after is not None
    assert after.replace("4", "1", 1) in (text, text.replace("a:", "a: 1", 1))
    assert textwrap.dedent(after)
