"""The guest itself: watches until the training loop is found, then serves windows until the supervisor ends it."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import multiprocessing.util
import os
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Union

import torch
from torch.utils.data import get_worker_info

from .files import save_hooks
from .found import describe, device_of, like_of
from .knobs import batch_seen, own_settings, watch
from .loader import iterators
from .loader.attributes import samples_told, worker_died
from .loader.iterators import plain_next
from .loop.batches import batch_samples
from .loop.ladder import Loop, look, look_at_backwards, look_at_closures
from .loop.steps import Steps
from .modes import loading as recording
from .process import ptrace, surroundings, tracebacks
from .process.originals import exit_now, getpid, now, sleep
from .process.rank_place import Place, place
from .serve.bare_server import BareServer
from .serve.loader_server import LoaderServer
from .serve.window import TheirError
from .wire.channel import VARIABLE, Channel
from .wire.expected import NAME, Expected
from .wire.liveness import Liveness
from .wire.messages import Crashed, End, Ended, Grant, Hello, Trouble, WindowDone
from .wire.seen import Seen
from .wire.tried import NAME as TRIED
from .wire.turn import NAME as TURN
from .wire.turn import Turn

KILLED_WITHIN = 10.0
"""Within this many seconds of its `End`, the supervisor ends whatever is left of the session."""


class Guest:
    """There is one in each process. It does nothing visible until something trains."""

    def __init__(self, invitation: str) -> None:
        self._invitation = invitation
        self._steps = Steps()
        self._channel: Optional[Channel] = None
        self._server: Union[LoaderServer, BareServer, None] = None
        self._off = False
        self._ending = False
        self._forked = False
        self._seen: Optional[Seen] = None
        told = json.loads(invitation)
        self._expected: Optional[Expected] = Expected.read(told.get(NAME))
        self._turn = Turn(told.get(TURN, ""), now, sleep)
        self._tried: Optional[Dict[str, Any]] = told.get(TRIED)

    def attach(self) -> None:
        """Hook torch. Called once torch has been executed."""
        self._steps.install()
        self._steps.on_optimizer_step = self._optimizer_stepped
        self._steps.on_backward_ended = self._backward_ended
        self._steps.on_closure_pass = self._closure_passed
        self._steps.callers.observe = own_settings
        watch(self._steps)
        self._steps.tell = self._tell
        self._tell()  # That torch is here says something too.
        iterators.install(self._next, self._get_iterator)
        recording.install()
        save_hooks.install()
        ptrace.allow_supervisor(self._invitation)
        surroundings.know_supervisor(self._invitation)
        atexit.register(self._at_exit)
        if multiprocessing.parent_process() is not None:
            # What multiprocessing starts ends without `atexit`.
            multiprocessing.util.Finalize(None, self._at_childs_exit, exitpriority=-100)
        tracebacks.on_crash = self._crashed
        os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        # A loader's worker, or a process that the user forks, perhaps to train in it: what was seen so far was not seen
        # there. Where a loop is being served already, this is none of it.
        self._off = self._off or self._server is not None
        self._forked = True
        self._turn.leave()
        self._seen = None
        if not self._off:
            self._steps.forget()
            self._steps.tell = self._tell
        if self._channel is not None:
            self._channel.close_in_child()
            self._channel = None

    # -- events ------------------------------------------------------------------------------------------------------

    def _get_iterator(self, loader: Any) -> Any:
        if self._off or not isinstance(self._server, LoaderServer):
            return None
        return self._server.shell(loader)

    def _next(self, iterator: Any, loader: Any) -> Any:
        if self._off:
            return plain_next(iterator)
        if self._server is None:
            self._trains()
            loop = look(self._steps, self._expected_of(loader))
            if loop is not None and loop.record is not None and loop.record.loader() is loader:
                self._begin(loop, iterator, loader)
        server = self._server
        if isinstance(server, LoaderServer):
            if torch.is_grad_enabled() and server.serves(loader):
                return self._served(server, iterator)
            # Another loader, or an evaluation on the training loader: theirs alone, and no part of a step.
            server.foreign_request(loader)
            try:
                return plain_next(iterator)
            finally:
                server.foreign_answered(loader)
        if not torch.is_grad_enabled():
            batch = plain_next(iterator)
            self._steps.evaluated += 1
            self._tell()
            return batch
        return self._observe(iterator, loader)

    def _expected_of(self, loader: Any) -> Optional[Expected]:
        """What is expected of the loop over this loader; None where another one was expected."""
        if self._expected is not None:
            try:
                if self._expected.loader == like_of(loader):
                    return self._expected
            except Exception:  # A loader unlike any: its loop is found as any is, by more steps.
                self._expected = None
        return None

    def _served(self, server: LoaderServer, iterator: Any) -> Any:
        """A batch from the server. The user's own errors are raised as without a server."""
        theirs: Optional[Exception] = None
        try:
            try:
                return server.request(iterator)
            except RuntimeError as error:
                if not worker_died(error) or not server.give_up_window(error):
                    raise
                return server.request(iterator)
        except StopIteration:
            raise
        except TheirError as error:
            theirs = error.original
        except Exception:
            self._report_trouble()
        assert theirs is not None
        raise theirs

    def _report_trouble(self) -> None:
        """The guest failed: tell the supervisor, and end this process, because its loop can't be trusted any more."""
        import traceback

        if self._channel is not None:
            try:
                self._channel.send(Trouble(text=traceback.format_exc()))
            except OSError:
                pass
        self._leave()

    def _observe(self, iterator: Any, loader: Any) -> Any:
        requested = now()
        try:
            batch = plain_next(iterator)
        except StopIteration:
            record = self._steps.records.get(id(loader))
            if record is not None:
                record.epoch_ended()
            raise
        try:
            self._delivered(iterator, loader, batch, requested)
        except Exception:  # A loader unlike any: the user's program goes on alone.
            self._off = True
        return batch

    def _delivered(self, iterator: Any, loader: Any, batch: Any, requested: float) -> None:
        samples = batch_samples(batch, samples_told(loader))
        self._steps.batch_delivered(loader, requested, now(), samples)
        record = self._steps.records[id(loader)]
        if iterator._num_yielded <= 1:
            record.epoch_begins()
        record.in_epoch += 1
        if self._server is None:
            batch_seen(self._steps, loader, batch)

    def _optimizer_stepped(self, optimizer: Any) -> None:
        self._ended("optimizer step", lambda: look(self._steps, self._expected))

    def _backward_ended(self) -> None:
        self._ended("backward", lambda: look_at_backwards(self._steps))

    def _closure_passed(self) -> None:
        self._ended("closure", lambda: look_at_closures(self._steps, self._expected))

    def _ended(self, rung: str, look_again: Callable[[], Optional[Loop]]) -> None:
        """Something ended that may be the end of a step in a loop without a loader."""
        if self._off or (threading.current_thread() is not threading.main_thread() and self._server is None):
            return
        if self._server is None:
            try:
                loop = look_again()
            except Exception:  # The user's program goes on alone.
                self._off = True
                return
            if loop is not None and loop.record is None:
                self._begin(loop, None, None)
        if isinstance(self._server, BareServer) and self._server.rung == rung:
            try:
                self._server.step_ended()
            except Exception:
                self._report_trouble()

    def _tell(self) -> None:
        """Record what was seen so far, in case the time ends before a loop is found."""
        if self._steps.backwards:
            self._trains()
        if self._seen is None:
            self._seen = Seen(json.loads(self._invitation).get("scratch", ""))
        self._seen.set(self._steps.counts())

    def _trains(self) -> None:
        """Training is about to begin, or an evaluation before it: wait until it is this process's turn."""
        if self._turn.is_to_come and place().world == 1:  # Ranks wait for one another.
            self._steps.stood_still(self._turn.take())

    # -- serving -----------------------------------------------------------------------------------------------------

    def _begin(self, loop: Loop, iterator: Any, loader: Any) -> None:
        """The loop is found: tell the supervisor, and get ready to serve."""
        self._steps.stop_observing()
        self._turn.give_back()
        if self._forked and (loop.rung == "batches" or get_worker_info() is not None):
            self._off = True  # It helps with something, and does not train.
            return
        self._steps.by_calls = loop.by_calls
        try:
            device = device_of(self._steps)
            found = describe(self._steps, loop, loader, device, self._tried)
            self._connect()
        except Exception:  # Nobody is there, or the loop is unlike any known: the user's program goes on alone.
            self._off = True
            return
        assert self._channel is not None
        # There before anybody looks for it.
        liveness = Liveness(json.loads(self._invitation).get("scratch", ""), found.run_ends)
        self._channel.send(found)
        if loop.record is None:
            self._server = BareServer(self._steps, loop, self._ask, device, liveness)
        else:
            self._server = LoaderServer(
                self._steps, loop, iterator, loader, iterator._num_yielded, self._ask, device, liveness
            )

    def _connect(self) -> None:
        if self._channel is None:
            self._channel = Channel.connect(self._invitation)
            here = place()
            self._channel.send(_hello(json.loads(self._invitation)["token"], here))
            if here.world > 1:
                self._channel.listen(self._told_to_end)

    def _ask(self, report: Optional[WindowDone]) -> Grant:
        assert self._channel is not None
        try:
            if report is not None:
                self._channel.send(report)
            answer = self._channel.receive()
        except OSError:
            answer = None
        if answer is None or isinstance(answer, End):
            self._leave()
        assert isinstance(answer, Grant)
        return answer

    def _told_to_end(self) -> None:
        """Called in the thread that listens, in a process that is one of several ranks."""
        if not self._ending and not self._off:
            self._leave()

    def _leave(self) -> None:
        """End the process without running the user's clean-up, which would save a half-trained model."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        if self._server is not None:
            self._server.kill_workers()
        if multiprocessing.parent_process() is not None:
            # The process that started this one would go on as if training had succeeded, and save its model.
            sleep(KILLED_WITHIN)
        exit_now(0)

    def _at_childs_exit(self) -> None:
        if self._server is not None:  # Loader workers, and whatever else did not train, end without a word.
            self._at_exit()

    def _at_exit(self) -> None:
        if self._off or self._ending or (self._forked and self._server is None):
            return
        self._ending = True
        steps = self._steps
        try:
            self._connect()
            assert self._channel is not None
            self._channel.send(
                Ended(
                    batches=steps.batches,
                    optimizer_steps=steps.optimizer_steps,
                    backwards=steps.backwards,
                    served=self._server is not None,
                    evaluated=steps.evaluated,
                )
            )
        except Exception:  # Whatever it is, it must not be the last that the user reads.
            pass
        if self._server is not None:
            self._server.kill_workers()

    def _crashed(self, text: str) -> None:
        """An exception of the user's ends this process, which a launcher started or which is one of several ranks.

        The supervisor gets its traceback, because a launcher would hide it."""
        if self._off or ("RANK" not in os.environ and place().world < 2):
            return
        self._ending = True
        try:
            self._connect()
            assert self._channel is not None
            self._channel.send(Crashed(text=text))
        except Exception:
            pass


def _hello(token: str, here: Place) -> Hello:
    return Hello(
        token=token,
        pid=getpid(),
        python=sys.version.split()[0],
        torch=torch.__version__,
        devices=_devices(),
        rank=here.rank,
        world=here.world,
        local_rank=here.local_rank,
        host=here.host,
    )


def _devices() -> List[str]:
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def attach() -> None:
    """Let the guest in. The bootstrap calls this once torch has been executed."""
    invitation = os.environ.get(VARIABLE)
    if invitation:
        Guest(invitation).attach()
