"""py-spy on real training under a guest: the planted functions on top, main and workers apart, nothing left behind."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, run_plain, write

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.profiling import pyspy
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.profiling.sampling import open_recording, sampling_profile
from bottleneck_doctor.runtime.process import ptrace

pytestmark = pytest.mark.process

SCRIPT = (
    PRELUDE
    + """\
import threading


def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def augment(sample):
    burn(0.004)
    time.sleep(0.002)
    return sample


class Slow(Rows):
    def __getitem__(self, index):
        return augment(super().__getitem__(index))


def log_gradients():
    burn(0.02)


def main():
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    loader = DataLoader(Slow(4000), batch_size=4, num_workers=2)
    for epoch in range(100000):
        for batch in loader:
            train_on(batch)
            log_gradients()


main()
"""
)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if text in line)


@pytest.mark.alone
def test_planted_functions_come_first(guest: StartGuest, tmp_path: Path) -> None:
    started = guest(SCRIPT)
    started.found()
    hello = started.session.hello
    assert hello is not None
    sampler = PySpySampler(hello.pid, tmp_path / "artifacts", rate=50)
    sampler.start()
    window = started.window(mode="sampled", lead_in=8, steps=80)
    recorded = sampler.stop()
    assert window.status == "ok", window.reason
    assert isinstance(recorded, Path), recorded
    assert recorded.parent == tmp_path / "artifacts"

    profile = sampling_profile(
        [recorded],
        rate=50,
        seconds=sampler.seconds,
        main_pids=[hello.pid],
        own_roots=[tmp_path],
        speedscope_file=recorded.with_suffix(".speedscope.json"),
    )
    # One main process and two workers: with the helper thread of main it would be twice as many. py-spy that was kept
    # waiting takes the samples it missed one after the other, some of them after the time that is counted here.
    most = 1.5 * 50 * sampler.seconds
    assert most / 3 < profile.samples["main"] < most
    assert profile.samples["workers"] + profile.samples.get("workers_idle", 0) < 2 * most
    main = [row for row in profile.functions if row.role == "main"]
    workers = [row for row in profile.functions if row.role == "workers"]
    assert main[0].name == "burn"
    assert 0.3 < main[0].share < 0.98
    assert {row.name.rpartition(".")[2] for row in workers[:2]} == {"burn", "augment"}
    burning, sleeping = sorted(workers[:2], key=lambda row: row.name, reverse=True)
    assert burning.own_path == str(tmp_path / "train.py")
    assert 0.3 < burning.share < 0.9
    assert sleeping.own_line == line_of("time.sleep(0.002)"), "waiting counts, at its line"
    assert sleeping.share > 0.1
    text = repr(profile.trees)
    assert "bottleneck_doctor" not in text
    assert "'log_gradients'" in repr(profile.trees["main"])
    assert "log_gradients" not in repr(profile.trees["workers"])
    assert "Slow.__getitem__" in repr(profile.trees["workers"])
    assert [path for path in profile.files if not (recorded.parent / path).is_file()] == []
    assert no_py_spy()


WAIT_SECONDS, BURST_SECONDS = 0.008, 0.0015
BURSTS = f"""\
import time

def wait():
    time.sleep({WAIT_SECONDS})

def burst():
    end = time.perf_counter() + {BURST_SECONDS}
    while time.perf_counter() < end:
        pass

print("ready", flush=True)
while True:
    wait()
    burst()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < (6, 12),
    reason="slices can be short since Linux 6.12",
)
@pytest.mark.alone
def test_short_bursts_are_seen_for_what_they_take(tmp_path: Path) -> None:
    """Bursts of 1.5 ms between waits: 16 % of the time. py-spy that waits for its turn saw 3 to 6 %."""
    script = write(tmp_path, BURSTS)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with PySpySampler(process.pid, tmp_path, rate=200) as sampler:
                time.sleep(6)
            recorded = sampler.stop()
        finally:
            process.kill()
    assert isinstance(recorded, Path), recorded
    rows = {row.name: row for row in open_recording([recorded]).functions()}
    assert sum(row.count for row in rows.values()) > 600
    truth = BURST_SECONDS / (WAIT_SECONDS + BURST_SECONDS)
    assert 0.5 < rows["burst"].share / truth < 1.29


def test_a_process_that_ends_meanwhile_leaves_its_recording(tmp_path: Path) -> None:
    script = write(tmp_path, "import time\ndef wait():\n    time.sleep(2)\nwait()\n")
    process = subprocess.Popen([sys.executable, str(script)])
    try:
        with PySpySampler(process.pid, tmp_path) as sampler:
            process.wait(30)
        recorded = sampler.stop()
    finally:
        process.kill()
        process.wait()
    assert isinstance(recorded, Path), recorded
    (hottest, *_) = open_recording([recorded]).functions()
    assert (hottest.name, hottest.line) == ("wait", 3)
    assert no_py_spy()


def test_an_abandoned_recording_leaves_the_process_running_and_no_file(tmp_path: Path) -> None:
    script = write(tmp_path, "import time\nwhile True:\n    time.sleep(0.01)\n")
    process = subprocess.Popen([sys.executable, str(script)])
    try:
        sampler = PySpySampler(process.pid, tmp_path)
        sampler.start()
        sampler.abandon()
        assert no_py_spy()
        assert psutil.Process(process.pid).status() in (psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING)
        assert not list(tmp_path.glob("*.raw"))
    finally:
        process.kill()
        process.wait()


def test_what_cannot_be_sampled_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        sampler = PySpySampler(process.pid, tmp_path)
        sampler.start()
        said = sampler.stop()
        assert isinstance(said, Warning)
        assert said.slug == "sampling-strange-python"
        assert sampler.stop() == said, "asked twice, it says the same"
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    gone = PySpySampler(process.pid, tmp_path)
    gone.start()
    assert isinstance(gone.stop(), Warning)

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pyspy.find_tool() is None
    missing = PySpySampler(1, tmp_path)
    missing.start()
    said = missing.stop()
    assert isinstance(said, Warning)
    assert said.slug == "sampling-no-tool"


@pytest.mark.parametrize(
    "invitation", ["", "[]", "{}", '{"supervisor": null}', '{"supervisor": "x"}', '{"supervisor": 1}']
)
def test_permission_never_harms(invitation: str, tmp_path: Path) -> None:
    folder = str(Path(ptrace.__file__).parents[3])
    script = write(
        tmp_path,
        f"""
        import os, sys
        sys.path.insert(0, {folder!r})
        from bottleneck_doctor.runtime.process.ptrace import allow_supervisor
        allow_supervisor({invitation!r})
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    )
    done = run_plain([str(script)], tmp_path)
    assert (done.code, done.out, done.err) == (0, "7\n", "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_refusal_is_recognised(tmp_path: Path) -> None:
    """py-spy run by another user is refused as it is by Yama and in containers: the report must say so."""
    tool = pyspy.find_tool()
    setpriv = shutil.which("setpriv")
    if (
        tool is None
        or setpriv is None
        or subprocess.run([setpriv, "--reuid", "65534", tool, "-V"], check=False).returncode
    ):
        pytest.skip("py-spy can't be run as another user here")
    script = write(tmp_path, "import time\ntime.sleep(60)\n")
    stranger = write(
        tmp_path, f'#!/bin/sh\nexec {setpriv} --reuid 65534 --bounding-set -all {tool} "$@"\n', "bin/py-spy"
    )
    stranger.chmod(0o755)
    process = subprocess.Popen([sys.executable, str(script)])
    try:
        time.sleep(0.5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", str(stranger.parent / "python"))
            sampler = PySpySampler(process.pid, tmp_path / "out")
            sampler.start()
            said = sampler.stop()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert isinstance(said, Warning)
    assert said.slug == "sampling-not-permitted", said.sentence
    assert no_py_spy()


def no_py_spy() -> bool:
    """Whether no py-spy is left of this test's; it may take a moment to be gone."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if not [child for child in psutil.Process().children(recursive=True) if child.name() == "py-spy"]:
            return True
        time.sleep(0.05)
    return False
