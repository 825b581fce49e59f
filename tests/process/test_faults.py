"""What goes wrong inside a window costs that window, or its session, and never more: nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP, PRELUDE, run_plain, wait_until

from bottleneck_doctor.runtime.wire import channel, messages

pytestmark = pytest.mark.process

IN_WORKERS = (
    PRELUDE
    + """
class Fragile(Rows):
    def __getitem__(self, index):
        if torch.utils.data.get_worker_info() is not None:
            note("workers", os.getpid())
            exec(sys.argv[1])
        return super().__getitem__(index)


for epoch in range(100000):
    for batch in DataLoader(Fragile(), batch_size=4):
        train_on(batch)
"""
)


def test_dataset_that_fails_only_in_workers(guest: StartGuest) -> None:
    script = guest(IN_WORKERS, "raise ValueError('no database in a worker')")
    script.found()
    before = script.window({})
    for mode in ("timed", "loader_only"):
        done = script.window({"num_workers": 2}, mode=mode)
        assert done.status == "failed"
        assert "no database in a worker" in done.reason
        assert "\n" not in done.reason
    whole = script.window({"num_workers": 1}, lead_in=0, steps=0, epochs=1)
    assert (whole.status, whole.steps) == ("failed", 0)
    after = script.window({})
    assert (before.status, after.status, after.steps) == ("ok", "ok", before.steps)
    assert psutil.Process(script.session.pid).children() == []


def test_worker_that_is_killed(guest: StartGuest) -> None:
    script = guest(IN_WORKERS, "index == 30 and os.kill(os.getpid(), 9)")
    script.found()
    done = script.window({"num_workers": 2}, lead_in=2, steps=40)
    assert done.status == "failed"
    assert "worker" in done.reason
    assert script.window({}).status == "ok"


def test_worker_that_hangs_goes_with_its_session(guest: StartGuest) -> None:
    script = guest(IN_WORKERS, "time.sleep(1000)")
    script.found()
    script.grant({"num_workers": 2})
    assert script.event(1.5) is None
    assert wait_until(lambda: script.notes("workers"))
    script.close()
    assert not any(psutil.pid_exists(worker) for worker in script.notes("workers"))


def test_users_code_that_fails_under_autocast(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(
        PRELUDE
        + """
for batch in DataLoader(Rows(4000), batch_size=4):
    output = model(batch[0])
    if output.dtype != torch.float32:
        raise TypeError("my own loss takes float32 only")
    optimizer.zero_grad()
    output.mean().backward()
    optimizer.step()
"""
    )
    script.found()
    assert script.window({}).status == "ok"
    script.grant({"autocast": "bfloat16"})
    exited = script.exited()
    assert exited.code == 1
    assert exited.tail.rstrip().endswith("TypeError: my own loss takes float32 only")
    assert "bottleneck_doctor" not in exited.tail


CATCHING = (
    PRELUDE
    + """
import atexit
atexit.register(lambda: note("clean-up", "atexit"))
loader = DataLoader(Rows(8000), batch_size=4, num_workers=1)
while True:
    try:
        for batch in loader:
            train_on(batch)
    except BaseException as error:
        note("clean-up", type(error).__name__)
    finally:
        note("clean-up", "finally")
"""
)


def test_end_comes_without_the_users_clean_up(guest: StartGuest) -> None:
    """A script that catches everything would save a half-trained model, and train on."""
    script = guest(CATCHING)
    script.found()
    assert script.window({}, lead_in=4).status == "ok"
    script.session.grant(messages.End())  # type: ignore[arg-type]  # what `stop` sends
    assert script.exited().code == 0
    assert script.notes("clean-up") == []


@pytest.mark.timed
def test_session_ends_a_script_that_ignores_everything(guest: StartGuest) -> None:
    script = guest("import signal\nfor number in (1, 2, 15):\n    signal.signal(number, signal.SIG_IGN)\n" + CATCHING)
    script.found()
    script.grant({"num_workers": 2}, lead_in=6, steps=10**6)
    time.sleep(0.2)
    family = psutil.Process(script.session.pid).children(recursive=True)
    began = time.monotonic()
    script.close()
    assert time.monotonic() - began < 5
    assert not any(process.is_running() for process in family)
    assert script.notes("clean-up") == []


@pytest.mark.parametrize(
    "when", [pytest.param("between windows", marks=pytest.mark.slow(together=True)), "in a window"]
)
def test_guest_ends_when_its_supervisor_is_gone(guest: StartGuest, when: str) -> None:
    script = guest(LOOP)
    script.found()
    if when == "in a window":
        script.grant({"num_workers": 1}, lead_in=3, steps=200)
    line = script.session._lines.by_rank[0]
    assert line is not None
    line.shutdown(socket.SHUT_RDWR)
    assert script.exited(15).code == 0


def test_unharmed_where_nobody_listens(tmp_path: Path) -> None:
    """The variable may be inherited by something that outlives the supervisor: it trains on, alone."""
    from bottleneck_doctor.session.entrypoint_process import ENTRY_FOLDER

    loop = "for batch in DataLoader(Rows(80), batch_size=4): train_on(batch)\nprint('done')"
    (tmp_path / "train.py").write_text(PRELUDE + loop)
    for invitation in ('{"address": "/nowhere", "token": "x"}',):
        plain = run_plain(
            [str(tmp_path / "train.py")],
            tmp_path,
            {channel.VARIABLE: invitation, "PYTHONPATH": str(ENTRY_FOLDER)},
        )
        assert (plain.code, plain.out, plain.err) == (0, "done\n", "")


def test_words_with_a_wrong_token_are_not_heard(guest: StartGuest) -> None:
    script = guest(LOOP)
    address = str(script.session._folder / "line")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.connect(address)
        stranger.sendall(messages.encode(messages.Hello(token="guess", pid=os.getpid(), python="3", torch="2")))
        stranger.sendall(messages.encode(messages.WindowDone(window=1, status="ok")))
        script.found()
        assert script.session.hello is not None
        assert script.session.hello.token != "guess"
    assert script.window({}).status == "ok"


def test_script_killed_from_outside(guest: StartGuest) -> None:
    script = guest(LOOP.replace("batch_size=4", "batch_size=4, num_workers=2"))
    script.found()
    script.grant({}, lead_in=6, steps=10**6)
    time.sleep(0.2)
    assert script.session.pid is not None
    os.kill(script.session.pid, signal.SIGKILL)
    assert script.exited().code == -signal.SIGKILL


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends them on Linux only")
def test_workers_of_a_killed_script_end_at_once(guest: StartGuest) -> None:
    """torch's own look after their parent every five seconds, and nobody else may be left to end them."""
    script = guest(IN_WORKERS, "time.sleep(0.01)")
    script.found()
    script.grant({"num_workers": 2}, lead_in=6, steps=10**6)
    assert wait_until(lambda: len(set(script.notes("workers"))) == 2)
    assert script.session.pid is not None
    os.kill(script.session.pid, signal.SIGKILL)
    assert wait_until(lambda: not any(map(lives, set(script.notes("workers")))), 2.0)
    assert script.exited().code == -signal.SIGKILL
