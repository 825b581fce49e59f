"""Decides which setting is to blame if a window fails or a session ends in one, and rules that setting out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import LoopShape, Probe
from bottleneck_doctor.measure.windows import AS_WRITTEN
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.ending import Hung, TooSlow
from bottleneck_doctor.session.failure import Cause, Failure, Stack, cause, signal_name
from bottleneck_doctor.session.session import Exited

MOST_ALIKE = 3
"""Processes that may end in windows of one setting although the script ends so by itself: each costs a start."""


class Blame:
    """Rules settings out of `measured`."""

    def __init__(self, measured: Measurements, shape: LoopShape) -> None:
        self._measured = measured
        self._shape = shape
        self._crashes: Counter[str] = Counter()
        self._ended_with: dict[str, list[set[str]]] = {}
        """The knobs of the windows in which a process ended with an error, by the error."""
        self._memory_kills: int | None = None
        self._loaded_here: tuple[int, Probe] | None = None
        """The session and the probe that last loaded in the main process although the user has workers."""

    def begin(self) -> None:
        """A window begins: it may cause what happens to the machine from now on."""
        self._memory_kills = autopsy.memory_kills()

    def ended(self, each: Probe, window: Window) -> None:
        """A window ended and its session goes on. Rules its setting out if it failed or had no effect."""
        if window.status in ("ok", "discarded") and window.steps:
            if self._shape.num_workers and num_workers.asked(each.as_setting()) == 0:
                self._loaded_here = (window.session, each)
        elif window.status == "no_effect" and each.key not in AS_WRITTEN:
            idle = [name for name, seen in window.effect.items() if not seen]
            self._measured.rule_out_idle(each, idle or window.setting)
        elif window.status == "failed" and each.key not in AS_WRITTEN:
            self._rule_out(each, cause(self._failure(each, words=window.reason)))

    def died(self, session: int, each: Probe, event: Any) -> Cause | None:
        """A session died in a window. Rules its setting out if the setting is known to be to blame, or if it is the
        second time. Otherwise the script may have ended by itself, and the setting is tried once more.

        `event`: what came instead of the window. Returns why the window failed; None if its setting is not to blame.
        """
        hung = isinstance(event, Hung)
        if isinstance(event, Hung):
            known = cause(self._failure(each, hung=True, stacks=event.stacks))
        elif isinstance(event, TooSlow):
            known = Cause(f"a window {event}, over ten times as long as expected")
        elif isinstance(event, Exited) and event.code != 0:
            known = cause(self._failure(each, words=event.tail, signal=signal_name(event.code)))
        elif isinstance(event, messages.Trouble):
            known = Cause(f"a bug in doctor: {event.text.strip().splitlines()[-1]}", certain=False)
        else:
            return None
        if not known.known and self._is_of_the_script(each, known) and self._crashes[each.key] < MOST_ALIKE:
            self._crashes[each.key] += 1
            self._measured.rule_in(known.sentence)
            return None
        if each.key in AS_WRITTEN:
            if hung and self._loaded_here is not None and self._loaded_here[0] == session:
                # As written it has hung nowhere else. So the cause is what loading in the main process left behind.
                self._rule_out(
                    self._loaded_here[1],
                    Cause(
                        "workers that were started after loading in the main process hung, so it was not tried again"
                    ),
                )
            return None
        self._crashes[each.key] += 1
        if hung or known.certain or knobs.may_crash(each.as_setting()) or self._crashes[each.key] >= 2:
            self._rule_out(each, known)
        return known

    def _is_of_the_script(self, each: Probe, known: Cause) -> bool:
        """Whether a process has ended with this error before, in a window that has no knob in common with this one. So
        the script fails there by itself, as at the end of its first epoch."""
        own = set(each.as_setting())
        before = self._ended_with.setdefault(known.sentence, [])
        alike = any(own.isdisjoint(other) for other in before)
        before.append(own)
        return alike

    def _rule_out(self, each: Probe, known: Cause) -> None:
        self._measured.rule_out(each, known.sentence)
        if known.every_count and not self._shape.num_workers and num_workers.asked(each.as_setting()) is not None:
            self._measured.rule_out_workers(known.sentence)

    def _failure(
        self, each: Probe, *, words: str = "", signal: str = "", hung: bool = False, stacks: Sequence[Stack] = ()
    ) -> Failure:
        """What is known about a probe that has just failed."""
        kills, before = autopsy.memory_kills(), self._memory_kills
        return Failure(
            setting=each.as_setting(),
            words=words,
            signal=signal,
            hung=hung,
            own_workers=self._shape.num_workers,
            start_method=self._measured.found.start_method,
            stacks=stacks,
            shared_memory=autopsy.shared_memory(),
            open_handle="" if self._shape.num_workers else self._measured.found.open_handle,
            out_of_memory=kills is not None and before is not None and kills > before,
        )
