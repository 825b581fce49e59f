"""Why py-spy can't look: each cause has its own advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck_doctor.profiling import obstacle
from bottleneck_doctor.profiling.obstacle import Surroundings

DENIED = """Permission Denied: Try running again with elevated permissions by going 'sudo env "PATH=$PATH" !!'"""
PLAIN = Surroundings(platform="linux", root=False, ptrace_scope=0, can_trace=False, filtered=False)


@pytest.mark.parametrize(
    ("here", "said"),
    [
        (replace(PLAIN, ptrace_scope=2), "sudo sysctl kernel.yama.ptrace_scope=1"),
        (replace(PLAIN, ptrace_scope=3), "reboot"),
        (replace(PLAIN, root=True), "--cap-add=SYS_PTRACE"),
        (replace(PLAIN, filtered=True, ptrace_scope=None), "--cap-add=SYS_PTRACE"),
        (replace(PLAIN, can_trace=True, filtered=True), "seccomp"),
        (replace(PLAIN, ptrace_scope=1), "another user"),
        (Surroundings(platform="darwin", root=False), "sudo"),
        (Surroundings(platform="win32", root=False), "administrator"),
    ],
)
def test_refusals_say_what_to_do(here: Surroundings, said: str) -> None:
    warning = obstacle.explain(DENIED, here)
    assert warning.slug == "sampling-not-permitted"
    assert said in warning.sentence


def test_a_python_that_py_spy_does_not_know() -> None:
    said = "Error: Failed to find python version from target process\n\nStack backtrace:\n   0: anyhow"
    warning = obstacle.explain(said, PLAIN)
    assert warning.slug == "sampling-strange-python"
    assert "pip install --upgrade py-spy" in warning.sentence


def test_anything_else_is_quoted_without_its_backtrace() -> None:
    said = "Sampling process 100 times a second\nError: Failed to write\n\nStack backtrace:\n   0: anyhow::Error\n"
    warning = obstacle.explain(said, PLAIN)
    assert warning.slug == "sampling-failed"
    assert warning.sentence.endswith("it said: Error: Failed to write.")
    assert obstacle.explain("", PLAIN).sentence.endswith("it said: nothing.")


def test_looking_around_says_what_there_is() -> None:
    here = obstacle.look_around()
    if here.platform == "linux":
        assert here.can_trace is not None
        assert here.filtered is not None
