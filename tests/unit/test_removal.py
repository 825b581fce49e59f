"""The edit that takes calls out of the user's loop."""

from __future__ import annotations

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.removal import removal_change

HEAD = "import gc\nimport torch\nfor batch in loader:\n    train_on(batch)\n"


def edited(tail: str, *calls: tuple[str, int]) -> str:
    change = removal_change(HEAD + tail, calls or (("gc.collect", 5),))
    assert isinstance(change, ChangeText)
    return change.edited.removeprefix(HEAD)


def test_a_statement_goes_with_its_lines_and_its_comment() -> None:
    assert edited("    gc.collect()  # for memory\n    report()\n") == "    report()\n"
    assert edited("    gc.collect(\n        2,\n    )\n    report()\n") == "    report()\n"
    change = removal_change(HEAD + "    gc.collect()\n", [("gc.collect", 5)])
    assert change is not None
    assert (change.line, change.note) == (5, "")
    assert "-    gc.collect()\n" in change.diff


def test_several_lines_of_a_file_go_at_once() -> None:
    calls = [("gc.collect", 5), ("torch.cuda.empty_cache", 6)]
    assert edited("    gc.collect()\n    torch.cuda.empty_cache()\n    report()\n", *calls) == "    report()\n"


def test_an_if_goes_too_that_only_compares_and_holds_nothing_else() -> None:
    assert edited("    if step % 10 == 0:\n        gc.collect()\n    report()\n", ("gc.collect", 6)) == "    report()\n"
    nested = "    if a:\n        if b:\n            gc.collect()\n    report()\n"
    assert edited(nested, ("gc.collect", 7)) == "    report()\n"


def test_pass_stands_where_something_has_to() -> None:
    for head, tail in (
        ("    if due(step):\n", ""),
        ("    if a:\n        b()\n    elif c:\n", ""),
        ("    if a:\n", "    else:\n        b()\n"),
        ("    try:\n", "    finally:\n        b()\n"),
    ):
        line = 5 + head.count("\n")
        assert edited(f"{head}        gc.collect()\n{tail}", ("gc.collect", line)) == f"{head}        pass\n{tail}"


def test_a_call_that_shares_its_line_or_whose_value_is_used_is_named() -> None:
    for line in ("    freed = gc.collect()\n", "    report(); gc.collect()\n", "    if a: gc.collect()\n"):
        change = removal_change(HEAD + line, [("gc.collect", 5)])
        assert change is not None
        assert change.diff == ""
        assert change.note == "Remove `gc.collect()` in line 5."


def test_a_call_by_another_name() -> None:
    assert edited("    collect()\n    report()\n") == "    report()\n"
    assert edited("    sweep()\n    report()\n") == "    report()\n"


def test_nothing_where_there_is_no_such_call() -> None:
    assert removal_change(HEAD, [("gc.collect", 3)]) is None
    assert removal_change(HEAD + "    b(gc.freeze(), 1)\n", [("gc.collect", 5)]) is None
    assert removal_change("for", [("gc.collect", 1)]) is None
