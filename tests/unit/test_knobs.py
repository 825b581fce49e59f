"""Knobs, as both sides know them: each declared once, and nobody else asks for one by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

import bottleneck_doctor
from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.knobs import KnobSpec, LoaderArgument, Loading, all_knobs, num_workers, replay
from bottleneck_doctor.runtime import knobs as guests

SOURCE = Path(bottleneck_doctor.__file__).parent


# -- both sides --------------------------------------------------------------------------------------------------------


def test_a_knob_is_called_as_its_file_is_on_both_sides() -> None:
    own, guest = ({path.stem for path in (SOURCE / room).glob("[a-z]*.py")} for room in ("knobs", "runtime/knobs"))
    assert {each.name for each in all_knobs()} == own
    assert {each.name for each in all_knobs() if each.layer != "session"} <= guest == set(guests.registry())
    # Of what a process is started with, the guest may tell what was seen.
    assert guest <= own


@pytest.mark.parametrize("spec", [each for each in all_knobs() if each.layer != "session"], ids=lambda each: each.name)
def test_both_sides_agree(spec: KnobSpec) -> None:
    kind = guests.kinds()[spec.name]
    assert kind.layer == spec.layer
    assert kind.argument == isinstance(spec.edit, LoaderArgument)
    assert kind.keeps_batches == spec.ceiling
    # A loop without a loader takes what acts in its process, and nothing else.
    assert guests.needs_loader({spec.name: 1}) == (spec.layer == "loader")


# -- what is asked of them ---------------------------------------------------------------------------------------------


def test_order_is_by_layer_and_name() -> None:
    names = [each.name for each in all_knobs()]
    assert (
        names.index("num_workers") < names.index("replay") < names.index("autocast") < names.index("intra_op_threads")
    )
    assert all_knobs() is all_knobs()


AS_WRITTEN = Loading(workers=3, prefetch=2, persistent=False)


@pytest.mark.parametrize(
    ("setting", "loading"),
    [
        ({}, AS_WRITTEN),
        ({"num_workers": 8}, Loading(8, 2, False)),
        ({"num_workers": 0, "prefetch_factor": 4}, Loading(0, 4, False)),
        ({"persistent_workers": True, "prefetch_factor": 5}, Loading(3, 5, True)),
        ({"autocast": "bfloat16", "pin_memory": True, "intra_op_threads": 1}, AS_WRITTEN),
        ({"replay": True}, Loading(0, 2, False)),
        ({"warp_drive": 9}, AS_WRITTEN),
    ],
)
def test_how_batches_are_made_under_a_setting(setting: Setting, loading: Loading) -> None:
    assert knobs.loading(setting, AS_WRITTEN) == loading
    assert loading.depth == loading.workers * loading.prefetch


def test_a_number_of_workers_is_a_number() -> None:
    assert num_workers.setting_of(4) == {"num_workers": 4}
    assert num_workers.asked({}) is None
    assert num_workers.asked({"num_workers": 0}) == 0
    assert num_workers.asked({"num_workers": 2, "autocast": "bfloat16"}) == 2
    assert (num_workers.under({}, 3), num_workers.under({"num_workers": 0}, 3)) == (3, 0)
    assert num_workers.alone({"num_workers": 2}) == 2
    assert num_workers.alone({"num_workers": 2, "autocast": "bfloat16"}) is None
    assert num_workers.alone({}) is None


def test_what_a_crash_and_the_first_steps_are_due_to() -> None:
    assert knobs.may_crash({"num_workers": 2, "autocast": "float16"})
    assert not knobs.may_crash({"num_workers": 2, "intra_op_threads": 1})
    assert knobs.may_crash({"channels_last": True}), "a model that flattens by `view` refuses it"
    assert knobs.settling({"num_workers": 2, "autocast": "float16"}) == {"autocast": "float16"}


def test_what_data_for_free_bounds() -> None:
    assert knobs.only_loads({})
    assert knobs.only_loads({"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True})
    for beyond in ({"pin_memory": True}, {"autocast": "bfloat16"}, {"replay": True}, {"warp_drive": 9}):
        assert not knobs.only_loads({"num_workers": 2, **beyond})


def test_the_ceiling_is_no_choice_of_a_user() -> None:
    assert labels.key_of(replay.SETTING) == labels.REPLAY
    assert knobs.is_ceiling(replay.SETTING)
    for setting in ("num_workers", "warp_drive"):
        assert not knobs.is_ceiling({setting: 2})
    assert [each.name for each in all_knobs() if each.edit is None] == ["replay"]


def test_the_users_own_values() -> None:
    found = replace(FOUND, has_loader=True, num_workers=2, prefetch_factor=4, persistent_workers=True, autocast="")
    own: Setting = {"num_workers": 2, "persistent_workers": True, "pin_memory": False, "prefetch_factor": 4}
    assert list(knobs.own_settings(found).items()) == list(own.items())
    assert "prefetch_factor" not in knobs.own_settings(replace(found, num_workers=0))
    assert knobs.own_settings(replace(found, has_loader=False, autocast="float16")) == {"autocast": "float16"}


# -- by name nowhere else ----------------------------------------------------------------------------------------------

SPEAKING = {
    "documents/labels.py": "the label of the ceiling is a promise",
    "edits/loader_target.py": "the DataLoader's own signature",
    "edits/autocast_region.py": "what torch's own context is called",
    "edits/uncompiled.py": "what torch's own method is called",
    "gate/cause/mentions.py": "what a user's own line may be about",
    "measure/phases.py": "a field of the report",
    "render/curves.py": "an axis is called so",
    "runtime/found.py": "a field of what was found",
    "runtime/loader/attributes.py": "what the DataLoader's own attributes are called",
    "runtime/loader/takers.py": "what the DataLoader's own arguments are called",
    "runtime/loader/shadow.py": "what the DataLoader's own attributes are called",
    "runtime/modes/loading.py": "a field of the report",
}
"""Files that name a knob and decide nothing by it, and why they do."""
RULES = "diagnose/"
"""A rule names the fixes that help, and says in words what to do."""
OWN = ("knobs/", "runtime/knobs/", "fixes/")


def strings(tree: ast.AST) -> Iterator[str]:
    """Strings that are written out, without those that stand alone as documentation."""
    alone = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_nobody_asks_for_a_knob_or_a_fix_by_name() -> None:
    names = {each.name for each in all_knobs()} | {fix.id for fix in catalogue()} | {labels.REPLAY}
    # The role of a process, and what /proc counts; which fix sweeps numbers of workers, its offer says.
    names -= {"workers", "threads"}
    names -= {"batch_size"}  # An argument of the DataLoader, which an edit of another one has to leave out.
    asking = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith((*OWN, RULES)) or place in SPEAKING:
            continue
        named = names & set(strings(ast.parse(path.read_text("utf-8"))))
        if named:
            asking[place] = named
    assert not asking, "ask the knob's spec (knobs/), or a function of its own file"
