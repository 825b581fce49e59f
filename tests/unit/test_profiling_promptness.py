"""Asking the system for short slices: granted where it can be, said where it can't."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from bottleneck_doctor.profiling import promptness
from bottleneck_doctor.profiling.promptness import make_prompt

linux = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="a system call of Linux"
)


@linux
def test_a_process_is_made_prompt() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        before = os.getpriority(os.PRIO_PROCESS, process.pid)
        assert make_prompt(process.pid)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) in (before, promptness.NICE)
        process.kill()
    assert not make_prompt(process.pid), "it is gone"


@linux
def test_who_may_not_be_less_nice_is_prompt_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refused(pid: int, nice: int) -> bool:
        asked.append(nice)
        return nice >= 0

    monkeypatch.setattr(promptness, "_asked", refused)
    assert make_prompt(os.getpid())
    assert asked == [promptness.NICE, os.getpriority(os.PRIO_PROCESS, 0)]


def test_elsewhere_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not make_prompt(os.getpid())
