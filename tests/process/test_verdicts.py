"""What fails in a probe is told in words that help, from what really comes back; the probes around it are unharmed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import IMPATIENT, PRELUDE, Guest, wait_until, write

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.failure import Failure, cause, signal_name
from bottleneck_doctor.session.session import Command, Exited

pytestmark = pytest.mark.process

TWO = {"num_workers": 2}

IN_WORKERS = (
    PRELUDE
    + """
class Fragile(Rows):
    def __getitem__(self, index):
        done = {"index": index, "row": super().__getitem__(index)}
        if torch.utils.data.get_worker_info() is not None and os.path.exists("what"):
            exec(open("what").read(), globals(), done)
        return done["row"]


for epoch in range(100000):
    for batch in DataLoader(Fragile(), batch_size=4):
        train_on(batch)
"""
)
"""What stands in the file `what` is done in workers only."""


def told(event: Any, **known: Any) -> str:
    """What is said of a window with two workers that came back as `event`."""
    if isinstance(event, messages.WindowDone):
        assert event.status == "failed", event
        words: dict[str, Any] = {"words": event.reason}
    else:
        assert isinstance(event, Exited), event
        words = {"words": event.tail, "signal": signal_name(event.code)}
    return cause(Failure(**{"setting": TWO, "start_method": "fork", **words, **known})).sentence


REPORTED = {
    "os.write(os.open('/dev/full', os.O_WRONLY), b'x')": "the disk is full: OSError: [Errno 28] No space left",
    "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34)); torch.empty(1 << 37)": (
        "memory was not enough for 2 workers"
    ),
    "bytearray(1 << 45)": "memory was not enough for 2 workers (MemoryError)",
    "torch.multiprocessing.Process(target=print).start()": "the dataset starts processes of its own",
    "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')": "the GPU's memory was not",
}


def test_what_fails_in_a_worker_is_told(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(IN_WORKERS)
    script.found()
    for code, sentence in REPORTED.items():
        (tmp_path / "what").write_text(code)
        assert told(script.window(TWO)).startswith(sentence)
        assert script.window({}).status == "ok"
    (tmp_path / "what").unlink()
    assert script.window(TWO, lead_in=6).status == "ok"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("os.kill(os.getpid(), 9)", "a worker was killed by SIGKILL (out of memory?); each worker holds a copy"),
        pytest.param("os.kill(os.getpid(), 11)", "a worker crashed (SIGSEGV)", marks=pytest.mark.slow(together=True)),
        pytest.param("os._exit(3)", "a worker ended without an error message", marks=pytest.mark.slow(together=True)),
    ],
)
def test_how_a_worker_ended_is_told(guest: StartGuest, tmp_path: Path, code: str, sentence: str) -> None:
    """torch tells the main process by a signal, so that it may come up in the user's own step and end the script."""
    (tmp_path / "what").write_text(f"if index > 40: {code}")
    script = guest(IN_WORKERS)
    script.found()
    script.grant(TWO, lead_in=2, steps=40)
    assert told(script.event()).startswith(sentence)


LOCKED = (
    PRELUDE
    + """
import threading

lock = threading.Lock()


def hold():
    while True:
        with lock:
            time.sleep(0.02)
        time.sleep(0.0002)


threading.Thread(target=hold, daemon=True).start()


class Guarded(Rows):
    def __getitem__(self, index):
        with lock:
            return super().__getitem__(index)


for epoch in range(100000):
    for batch in DataLoader(Guarded(), batch_size=1):
        train_on(batch)
"""
)
"""The lock is held at nearly every fork, and opens only where the thread is that holds it."""


def test_worker_that_waits_for_a_lock_is_seen_to(guest: StartGuest) -> None:
    script = guest(LOCKED)
    script.found()
    script.grant(TWO)
    assert script.event(1.0) is None
    assert script.session.hello is not None
    stacks = autopsy.stacks(script.session.hello.pid)
    if not stacks:
        pytest.skip("py-spy may not look into processes here")
    assert [stack.worker for stack in stacks] == [False, True, True]
    said = told(Exited(0, ""), hung=True, stacks=stacks)
    assert said.startswith("with workers the dataset hangs in `Guarded.__getitem__` (train.py:")
    assert 'try `multiprocessing_context="forkserver"`' in said


HASTY = IMPATIENT.replace("HANG_FACTOR = 4.0", "HANG_FACTOR = 0.0")
"""After five seconds, however long a window is."""


def impatient(folder: Path, *words: str, doctor: str = IMPATIENT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", doctor, "run", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.slow(together=True)
def test_dataset_that_hangs_in_workers_costs_one_hang(tmp_path: Path) -> None:
    write(tmp_path, LOCKED)
    options = [
        "--budget",
        "45s",
        "--no-explain",
        "--only",
        "workers",
        "--only",
        "intra-op-threads",
        "--only",
        "amp-bf16",
    ]
    done = impatient(tmp_path, *options, "train.py")
    assert done.returncode == Exit.DONE, done.stderr
    result = from_json((tmp_path / "report.json").read_bytes(), source="report.json")
    fixes = {fix.id: fix for fix in result.fixes}
    assert fixes["workers"].status == "failed"
    assert fixes["workers"].reason.startswith("with workers the dataset hangs")
    assert "forkserver" in fixes["workers"].reason
    assert fixes["amp-bf16"].status not in ("failed", "not_applicable")
    assert fixes["amp-bf16"].speedup is not None
    assert [record.ended for record in result.method.sessions].count("a window hung") == 1


STRANGE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model
        self.calls = 0

    def forward(self, rows):
        self.calls += 1
        {strange}
        return self.inner(rows)


model = Net()
for epoch in range(100000):
    for batch in DataLoader(Rows(400), batch_size=4):
        time.sleep(0.02)
        train_on(batch)
"""


@pytest.mark.slow
def test_steps_that_turn_slow_once_the_loop_was_found_are_no_hang(tmp_path: Path) -> None:
    """Four of them take twice as long together as it may take until a step is made."""
    write(tmp_path, PRELUDE + STRANGE.format(strange="time.sleep(2.5 if 14 <= self.calls < 18 else 0)"))
    done = impatient(
        tmp_path, "--budget", "40s", "--no-explain", "--only", "intra-op-threads", "train.py", doctor=HASTY
    )
    assert done.returncode == Exit.DONE, done.stderr
    result = from_json((tmp_path / "report.json").read_bytes(), source="report.json")
    assert result.baseline is not None
    assert {record.ended for record in result.method.sessions} <= {"told to end", "the time was over"}


@pytest.mark.slow
def test_a_script_that_hangs_is_not_said_to_have_failed(tmp_path: Path) -> None:
    script = PRELUDE + STRANGE.format(strange="time.sleep(1e6 if self.calls == 14 else 0)")
    write(tmp_path, script)
    begun = time.monotonic()
    done = impatient(tmp_path, "--budget", "90s", "--no-explain", "train.py", doctor=HASTY)
    assert time.monotonic() - begun < 45.0
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stderr
    assert "[training-hung]" in done.stderr
    assert "The training made no step for 5 s under doctor, before doctor changed anything." in done.stderr
    assert "failed by itself" not in done.stderr
    assert "py-spy dump" in done.stderr
    if "was in `" not in done.stderr:
        pytest.skip("py-spy may not look into processes here")
    line = 1 + script.splitlines().index("        time.sleep(1e6 if self.calls == 14 else 0)")
    assert f"The script was in `Net.forward` (train.py:{line})." in done.stderr


# -- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group in which a gigabyte of memory may be used."""
    root = Path("/sys/fs/cgroup")
    parent, limit = (root / "memory", "memory.limit_in_bytes") if (root / "memory").is_dir() else (root, "memory.max")
    group = parent / f"bottleneck-doctor-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        try:
            (group / limit).write_text(str(1 << 30))
        except OSError as error:
            pytest.skip(f"memory can't be limited here: {error}")
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text().strip())
        group.rmdir()


@pytest.mark.slow
def test_worker_that_the_kernel_kills_for_memory(small_group: Path, tmp_path: Path) -> None:
    (tmp_path / "what").write_text("torch.ones(1 << 29)")
    script = write(tmp_path, IN_WORKERS)
    enter = f'echo $$ > {small_group}/cgroup.procs && exec "$@"'
    before = autopsy.memory_kills()
    examined = Guest(Command(("sh", "-c", enter, "sh", sys.executable, str(script)), tmp_path))
    try:
        examined.found()
        examined.grant(TWO)
        event = examined.event()
        kills = autopsy.memory_kills()
        assert before is not None
        assert kills is not None
        assert kills > before
        said = told(event, out_of_memory=True)
        assert said.startswith("memory was not enough for 2 workers: the kernel killed a worker for lack of it")
    finally:
        examined.close()


def test_shared_memory_that_is_too_small(tmp_path: Path) -> None:
    """A container's default is 64 MiB, which batches of pictures fill."""
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    small = 'mount -t tmpfs -o size=4m none /dev/shm && exec "$@"'
    if shutil.which("unshare") is None or subprocess.run([*alone, small, "sh", "true"], capture_output=True).returncode:
        pytest.skip("this kernel lets nobody mount here")
    (tmp_path / "what").write_text("row = torch.ones(1 << 20), torch.ones(1)")
    script = write(tmp_path, IN_WORKERS)
    examined = Guest(Command((*alone, small, "sh", sys.executable, str(script)), tmp_path))
    try:
        examined.found()
        examined.grant(TWO)
        said = told(examined.event(), shared_memory=4 << 20)
        assert said.startswith("/dev/shm is too small (4 MiB) for 2 workers")
    finally:
        examined.close()


# -- what users' code does to its own process ------------------------------------------------------------------------


@pytest.mark.slow(together=True)
def test_much_output_in_no_encoding(guest: StartGuest) -> None:
    script = guest(
        PRELUDE
        + """
loud = b"\\xff\\xfe \\x00" + b"x" * 999_990 + b"\\n"
for number, batch in enumerate(DataLoader(Rows(4000), batch_size=4)):
    train_on(batch)
    if number < 100:
        sys.stdout.buffer.write(loud)
        sys.stderr.buffer.write(b"\\xe4\\xf6\\n")
    if number == 140:
        sys.stdout.flush()
        raise SystemExit("\\udcff the end")
"""
    )
    script.found()
    for setting in ({}, {"num_workers": 1}, {}):
        assert script.window(setting, lead_in=3, steps=20).status == "ok"
    exited = script.run_out()
    assert exited.code == 1
    assert exited.tail.rstrip().endswith("the end")
    assert script.session._output.log.size() > 99_000_000


def test_clocks_and_exit_that_the_script_replaced(guest: StartGuest) -> None:
    """Before torch, and the guest, came in. The wall clock jumps back and forth as one that is set does."""
    script = guest(
        """
import itertools, os, time

jump = itertools.cycle([0.0, 1e9, -1e9])
really, real_exit = time.time, os._exit
time.time = lambda: really() + next(jump)
time.perf_counter = time.process_time = lambda: 42.0


def leave(code):
    with open("left", "a") as handle:
        handle.write(f"{os.getpid() == main}\\n")
    real_exit(code)


main, os._exit = os.getpid(), leave
"""
        + PRELUDE
        + """
for epoch in range(100000):
    for batch in DataLoader(Rows(64, 0.002), batch_size=4):
        train_on(batch)
"""
    )
    found = script.found()
    assert all(0.005 < second < 1 for second in found.step_seconds)
    began = time.monotonic()
    for setting in ({}, {"num_workers": 1}, {}):
        done = script.window(setting, lead_in=4, steps=16)
        assert done.status == "ok"
        assert 0.01 < done.seconds < time.monotonic() - began
    script.session.grant(messages.End())  # type: ignore[arg-type]  # what `stop` sends
    assert script.exited().code == 0
    assert "True" not in (Path(script._cwd) / "left").read_text().split()


def test_tracer_of_the_users_own(guest: StartGuest) -> None:
    """A debugger or a coverage tool: it stays on, and what can't be had beside it is said to fail."""
    script = guest(
        PRELUDE
        + """
def trace(frame, event, argument):
    return None


sys.settrace(trace)
for epoch in range(100000):
    for batch in DataLoader(Rows(), batch_size=4):
        train_on(batch)
        if sys.gettrace() is not trace:
            note("traced by another", str(sys.gettrace()))
"""
    )
    script.found()
    for setting in ({}, {"num_workers": 1}, {"autocast": "bfloat16"}, {}):
        assert script.window(setting, lead_in=4).status == "ok"
    assert script.window({}, mode="phases").status == "ok"
    assert script.notes("traced by another") == []
