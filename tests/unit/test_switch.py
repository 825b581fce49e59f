"""The edit of something that the user has switched on: where it is written, and what is said where it is not."""

from __future__ import annotations

import pytest

from bottleneck_doctor.edits.switch import switches_change
from bottleneck_doctor.knobs import Switch

LAMP = Switch(
    "lamp.set_light({value})",
    calls=("set_light",),
    arguments=("light",),
    attribute="lamp.light",
    contexts=("lit",),
)
HEAT = Switch("lamp.set_heat({value})", calls=("set_heat",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lamp.set_light(True)", "lamp.set_light(False)"),
        ("set_light(mode=True, strict=True)  # why", "set_light(mode=False, strict=True)  # why"),
        ("with lamp.set_light(True): pass", "with lamp.set_light(False): pass"),
        ("Trainer(epochs=3, light=True)", "Trainer(epochs=3, light=False)"),
        ("room.lamp.light = True", "room.lamp.light = False"),
        ("é = 'ü'; lamp.light = True", "é = 'ü'; lamp.light = False"),
    ],
)
def test_the_opposite_is_written_where_it_stands(before: str, after: str) -> None:
    change = switches_change(f"import lamp\n\n{before}\nx = 1\n", {LAMP: False})
    assert change is not None
    assert change.found == {LAMP}
    assert (change.text.line, change.text.note) == (3, "")
    assert change.text.edited == f"import lamp\n\n{after}\nx = 1\n"
    assert f"-{before}\n+{after}\n" in change.text.diff


@pytest.mark.parametrize(
    "source",
    [
        "lamp.set_light(False)\n",
        "lamp.set_light(options.light)\n",
        "lamp.set_light()\n",
        "Trainer(light='True')\n",
        "other.light = True\n",
        "flashlamp.light = True\n",
        "lamp.set_light(True\n",
    ],
)
def test_what_is_not_written_out_is_not_touched(source: str) -> None:
    assert switches_change(source, {LAMP: False}) is None


def test_several_in_one_file_are_one_edit() -> None:
    source = "set_heat(True)\nset_light(True)\nlamp.light = True\n"
    change = switches_change(source, {LAMP: False, HEAT: False})
    assert change is not None
    assert change.found == {LAMP, HEAT}
    assert change.text.edited == source.replace("True", "False")
    only = switches_change(source, {HEAT: False})
    assert only is not None
    assert only.text.edited == source.replace("heat(True)", "heat(False)")


def test_a_with_that_switches_it_on_is_named() -> None:
    change = switches_change("import lamp\nwith lamp.lit():\n    pass\n", {LAMP: False, HEAT: False})
    assert change is not None
    assert change.found == {LAMP}
    assert (change.text.line, change.text.diff) == (2, "")
    assert change.text.note == "Remove `lamp.lit()` in line 2."
