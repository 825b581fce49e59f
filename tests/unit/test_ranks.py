"""Several ranks as one: who is waited for, how they come to one step, and what their windows make together."""

from __future__ import annotations

import os
import random
import socket
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.diagnosable import finding, healthy, shares, window

from bottleneck_doctor.documents.report import Rank, RankPart
from bottleneck_doctor.runtime.process import rank_place, suitability
from bottleneck_doctor.runtime.wire.messages import Found, Grant, Hello, WindowDone
from bottleneck_doctor.session import launch, ranks
from bottleneck_doctor.session.ranks import Apart, RankGroup, Together, merged_done, merged_found
from bottleneck_doctor.wording import words


def hello(rank: int, world: int = 2, host: str = "a") -> Hello:
    return Hello(token="", pid=100 + rank, python="3", torch="2", rank=rank, world=world, local_rank=rank, host=host)


def found(position: int = 7, **given: Any) -> Found:
    return Found(
        **{
            "rung": "optimizer step",
            "period": 1,
            "periodic": True,
            "step_seconds": [0.01] * 6,
            "wait_seconds": [0.005] * 6,
            "samples_per_step": 4.0,
            "device": "cpu",
            "usable_cpus": 4,
            "threads": 1,
            "has_loader": True,
            "position": position,
            "optimizer_steps": position,
            **given,
        }
    )


def done(number: int, position: int, **given: Any) -> WindowDone:
    told = {"status": "ok", "steps": 10, "samples": 40.0, "seconds": 1.0, "wait_seconds": 0.1, **given}
    return WindowDone(window=number, position=position, **told)


GRANT = Grant(1, {"num_workers": 2}, "timed", 2, 10)


class Party:
    """Ranks that do as they are told: a grant is run at once, to its last step."""

    def __init__(self, *positions: int, **given: Any) -> None:
        self.rank_group = RankGroup()
        self.at = dict(enumerate(positions))
        for rank, position in self.at.items():
            self.rank_group.found(hello(rank, len(positions)), found(position, **given), 0.0)

    def settled(self, now: float = 0.0) -> Any:
        for _ in range(20):
            sends, event = self.rank_group.settle(now)
            if event is not None:
                return event
            self.run(sends)
            if not sends:
                return None
        raise AssertionError("it never settles")

    def run(self, sends: list[tuple[int, Grant]]) -> None:
        for rank, grant in sends:
            assert grant.together
            self.at[rank] += grant.lead_in + grant.steps
            self.rank_group.done(rank, done(grant.window, self.at[rank]))


def test_what_one_rank_cannot_have_none_can() -> None:
    founds = {
        0: found(obstacles={"fused_optimizer": "", "find_unused_parameters": "", "no_sync": "already on"}),
        1: found(obstacles={"fused_optimizer": "", "find_unused_parameters": "some steps do not use all parameters"}),
    }
    assert merged_found(founds).obstacles == {
        "fused_optimizer": "",
        "find_unused_parameters": "some steps do not use all parameters",
        "no_sync": "already on",
    }


def test_a_process_alone_is_passed_through() -> None:
    group = RankGroup()
    alone = found()
    assert group.found(hello(0, 1), alone, 0.0) == []
    assert group.settle(0.0) == ([], alone)
    assert group.settle(9.0) == ([], None)
    assert group.granted(GRANT) == [(0, GRANT)]
    group.done(0, done(1, 19))
    assert group.settle(0.0) == ([], done(1, 19))
    assert group.hellos() == []


def test_all_ranks_are_awaited_and_granted_the_same() -> None:
    party = Party(7, 7)
    event = party.settled()
    assert isinstance(event, Found)
    assert event.samples_per_step == 8.0
    assert [each.rank for each in party.rank_group.hellos()] == [0, 1]
    sends = party.rank_group.granted(GRANT)
    assert sends == [(rank, replace(GRANT, together=True)) for rank in (0, 1)]
    party.rank_group.done(0, done(1, 19))
    assert party.rank_group.settle(0.0) == ([], None)
    party.rank_group.done(1, done(1, 19))
    assert isinstance(party.rank_group.settle(0.0)[1], Together)


def test_files_are_written_by_one_rank_only() -> None:
    party = Party(7, 7)
    party.settled()
    sends = dict(party.rank_group.granted(Grant(1, {}, "trace", 2, 6, options={"chrome_trace": "trace.json"})))
    assert sends[0].mode == "trace"
    assert (sends[1].mode, sends[1].options, sends[1].steps) == ("timed", {}, 6)
    assert {grant.mode for _, grant in party.rank_group.granted(Grant(2, {}, "phases", 2, 6))} == {"phases"}


@pytest.mark.parametrize("seed", range(30))
def test_ranks_that_are_apart_are_brought_to_one_step(seed: int) -> None:
    generator = random.Random(seed)
    positions = [generator.randint(7, 15) for _ in range(generator.randint(2, 5))]
    party = Party(*positions, period=4)
    assert isinstance(party.settled(), Found)
    assert set(party.at.values()) == {max(positions)}
    for number in range(1, 4):
        party.run(party.rank_group.granted(replace(GRANT, window=number)))
        # One of them counts a step more, whatever the reason: it is waited for, and the others are brought to it.
        extra = generator.randrange(len(positions))
        party.at[extra] += 1
        party.rank_group.members[extra].position += 1
        assert isinstance(party.settled(), Together)
        assert len(set(party.at.values())) == 1


def test_batches_taken_before_training_began_are_no_distance() -> None:
    """Each rank made six optimizer steps and stands still: they are at one step, though one counts a batch more."""
    party = Party(8, 7, optimizer_steps=6)
    assert isinstance(party.settled(), Found)
    assert party.at == {0: 8, 1: 7}
    party.run(party.rank_group.granted(GRANT))
    assert isinstance(party.settled(), Together)
    assert party.at == {0: 20, 1: 19}


def test_a_rank_that_sees_its_loop_later_is_given_more_to_see() -> None:
    group = RankGroup()
    group.found(hello(0), found(7, optimizer_steps=7), 0.0)
    assert group.settle(1.0) == ([], None)
    ((rank, grant),) = group.settle(ranks.LEAST_PATIENCE + 0.1)[0]
    assert (rank, grant.setting, grant.steps, grant.together) == (0, {}, 4, True)
    group.done(0, done(grant.window, 11))
    group.found(hello(1), found(9, optimizer_steps=9), 2.5)
    ((rank, grant),) = group.settle(2.5)[0]
    assert (rank, grant.steps) == (1, 2)
    group.done(1, done(grant.window, 11))
    assert isinstance(group.settle(2.6)[1], Found)


def test_a_rank_that_never_trains_is_measured_without() -> None:
    group = RankGroup()
    group.found(hello(0), found(7), 0.0)
    now, event = 0.0, None
    while event is None:
        now += 1.0
        sends, event = group.settle(now)
        for rank, grant in sends:
            group.done(rank, done(grant.window, group.members[rank].position + grant.steps))
    assert isinstance(event, Found)
    assert ranks.LONELY_SECONDS < now < 2 * ranks.LONELY_SECONDS
    assert group.missing == [1]
    assert [each.rank for each in group.hellos()] == [0]
    # Should it train after all, it is not to hold up the other.
    ((rank, grant),) = group.found(hello(1), found(7), now + 1)
    assert (rank, grant.steps) == (1, ranks.FOR_EVER)


def test_a_rank_that_comes_too_late_is_let_go() -> None:
    party = Party(7, 7)
    party.settled()
    ((rank, grant),) = party.rank_group.found(hello(2, 3), found(7), 50.0)
    assert (rank, grant.setting, grant.steps) == (2, {}, ranks.FOR_EVER)
    assert party.rank_group.size == 2


def test_ranks_that_wait_for_one_another_are_given_up() -> None:
    group = RankGroup()
    group.found(hello(0), found(9, period=2), 0.0)
    group.found(hello(1), found(7, period=2), 0.0)
    assert [rank for rank, _ in group.settle(0.0)[0]] == [1]
    assert group.settle(ranks.APART_SECONDS - 1) == ([], None)
    _, event = group.settle(ranks.APART_SECONDS + 1)
    assert isinstance(event, Apart)
    assert "rank 1 at step 7" in event.text


# -- windows of all ranks as one -------------------------------------------------------------------------------------


def test_a_window_is_as_long_as_the_slowest_ranks_and_holds_the_samples_of_all() -> None:
    parts = {
        0: done(
            1,
            19,
            seconds=2.0,
            wait_seconds=0.2,
            ready_batches=9,
            queue_change=1,
            epoch_overhead_seconds=0.1,
            started=5.0,
            elements=500,
        ),
        1: done(
            1,
            19,
            seconds=2.5,
            wait_seconds=2.0,
            ready_batches=2,
            queue_change=-4,
            epoch_overhead_seconds=0.3,
            samples=30.0,
            elements=700,
        ),
    }
    both = merged_done(parts)
    assert (both.slowest, both.seconds, both.steps, both.samples) == (1, 2.5, 10, 70.0)
    assert both.elements == 1200
    assert both.wait_seconds == pytest.approx(0.8 * 2.5)
    assert (both.ready_batches, both.queue_change, both.epoch_overhead_seconds, both.started) == (2, -4, 0.3, 5.0)
    assert both.parts == parts


def test_a_rank_that_alone_evaluates_is_not_counted_with_its_pause() -> None:
    """The others' clocks ran on while they waited for it; its own did not."""
    parts = {0: done(1, 19, steps=6, samples=24.0, seconds=0.6), 1: done(1, 19, seconds=9.0)}
    both = merged_done(parts)
    assert (both.slowest, both.steps, both.seconds, both.samples) == (0, 6, 0.6, 48.0)


def test_a_window_that_fails_in_one_rank_has_failed() -> None:
    both = merged_done({0: done(1, 19), 1: WindowDone(window=1, status="failed", reason="no database", position=19)})
    assert (both.status, both.reason, both.steps) == ("failed", "rank 1: no database", 0)
    everywhere = WindowDone(window=1, status="failed", reason="no database")
    assert merged_done({0: everywhere, 1: everywhere}).reason == "no database"
    idle = done(1, 19, status="no_effect", reason="pin_memory did not take effect", effect={"pin_memory": False})
    both = merged_done({0: done(1, 19, effect={"pin_memory": True}), 1: idle})
    assert (both.status, both.effect) == ("no_effect", {"pin_memory": False})


def test_details_are_of_the_rank_that_waits_longest() -> None:
    parts = {0: done(1, 19, detail={"of": 0}), 1: done(1, 19, wait_seconds=0.9, detail={"of": 1})}
    assert merged_done(parts).detail == {"of": 1}
    assert merged_done({**parts, 1: done(1, 19, wait_seconds=0.15, detail={"of": 1})}).detail == {"of": 0}


# -- the slowest is named --------------------------------------------------------------------------------------------


def in_phases(slow: dict[str, float], others: dict[str, float]) -> list[RankPart]:
    return [
        RankPart(
            rank=rank,
            steps=10,
            samples=40.0,
            seconds=5.0,
            wait_seconds=0.1,
            phases=shares(**(slow if rank == 1 else others)),
        )
        for rank in range(3)
    ]


def test_a_rank_that_computes_longer_is_named() -> None:
    parts = in_phases({"between": 0.4, "forward": 0.1, "backward": 0.43}, {"forward": 0.1, "backward": 0.83})
    hosts = [Rank(rank=rank, local_rank=0, host=f"node{rank}") for rank in range(3)]
    told = finding("straggler-rank", healthy(windows=[window(0, mode="phases", parts=parts)], ranks=hosts))
    assert told is not None
    assert "Rank 1 on node1 spends 40 % of the time between the passes, the others 2 %" in told.sentence


def test_a_rank_slow_in_its_backward_pass_is_named_where_communication_is_told_apart() -> None:
    parts = in_phases({"backward": 0.6, "communication": 0.1}, {"backward": 0.2, "communication": 0.5})
    told = finding("straggler-rank", healthy(windows=[window(0, mode="phases", parts=parts)]))
    assert told is not None
    assert "Rank 1 spends 60 % of the time in the backward pass, the others 20 %" in told.sentence


def test_waiting_in_a_barrier_makes_no_straggler() -> None:
    """The others' backward passes are no longer: nobody waited for this rank there."""
    parts = in_phases({"between": 0.4, "backward": 0.4}, {"backward": 0.4})
    assert finding("straggler-rank", healthy(windows=[window(0, mode="phases", parts=parts)])) is None


# -- words and commands ----------------------------------------------------------------------------------------------


def test_hosts_are_named() -> None:
    here = [Rank(rank=rank, local_rank=rank, host="a") for rank in range(2)]
    assert words.ranks_text(here) == "2 ranks on a"
    there = [*here, Rank(rank=2, local_rank=0, host="b")]
    assert words.ranks_text(there) == "3 ranks: 0, 1 on a; 2 on b"


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ((), ("py", "train.py", "--n", "1")),
        (("nowhere-torchrun", "--nproc-per-node", "2"), ("nowhere-torchrun", "--nproc-per-node", "2", "train.py")),
        (("nowhere/srun", "-n", "2"), ("nowhere/srun", "-n", "2", "py", "train.py")),
        (("nowhere/srun", "torchrun"), ("nowhere/srun", "torchrun", "train.py")),
    ],
)
def test_the_interpreter_stands_before_the_script_where_the_launcher_wants_a_program(
    launcher: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert launch.command("py", launcher, ("train.py", "--n", "1"))[: len(expected)] == expected
    assert launch.command("py", launcher, ("train.py", "--n", "1"))[-2:] == ("--n", "1")


def test_address_to_listen_at() -> None:
    assert launch.listen_address("10.0.0.1:0") == ("10.0.0.1", 0)
    assert launch.listen_address("[::1]:29400") == ("::1", 29400)
    for text in ("10.0.0.1", ":1", "host:", "host:port", "host:70000"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            launch.listen_address(text)
    assert launch.slurm_address({}) is None
    assert launch.slurm_address({"SLURM_JOB_NUM_NODES": "1"}) is None
    assert launch.slurm_address({"SLURM_JOB_NUM_NODES": "2"}) == (socket.gethostname(), 0)


def test_launcher_is_read_as_a_shell_would() -> None:
    assert launch.launcher_words("torchrun --rdzv-conf 'a=1,b=2'") == ("torchrun", "--rdzv-conf", "a=1,b=2")
    for text in ("", "torchrun 'unpaired"):
        with pytest.raises(ValueError, match=r"empty|quot"):
            launch.launcher_words(text)


def test_usable_cpus_are_divided_among_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(suitability, "_cgroup_cpus", lambda: None)
    assert [suitability.usable_cpus(ranks) for ranks in (1, 2, 3, 16)] == [8, 4, 2, 1]
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    assert suitability.usable_cpus(2, 2) == 2
    # Each rank is a task of SLURM's: the four are its own.
    monkeypatch.setenv("SLURM_NTASKS", "2")
    assert suitability.usable_cpus(2, 2) == 4


def test_place_without_a_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    assert rank_place.place()[:3] == (0, 1, 0)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert rank_place.place().world == 1, "without RANK nobody was launched"
    monkeypatch.setenv("RANK", "3")
    assert rank_place.place()[:3] == (3, 4, 3)
    assert rank_place.ranks_here(rank_place.place()) == 4
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert rank_place.place()[:3] == (3, 4, 1)
    assert rank_place.ranks_here(rank_place.place()) == 2


def test_ranks_with_unequal_epochs_are_told_apart_where_a_window_never_ends() -> None:
    group = RankGroup()
    for rank, length in ((0, 12), (1, 10)):
        group.found(hello(rank), found(epoch_batches=length), 0.0)
    assert isinstance(group.settle(0.0)[1], Found)
    group.granted(GRANT)
    assert group.parted(hung=False) is None, "they may be under way"
    both = group.parted(hung=True)
    assert both == Apart(
        "ranks 0, 1 did not come to the end of a window (batches of an epoch: 12 in rank 0, 10 in rank 1)"
    )
    group.done(0, done(1, 19))
    assert group.settle(1.0) == ([], None)
    one = group.parted(hung=False)
    assert one is not None
    assert one.text.startswith("rank 1 did not come to the end of a window that rank 0 ended (batches of an epoch: 12")
    group.done(1, done(1, 19))
    assert isinstance(group.settle(2.0)[1], Together)
    assert group.parted(hung=True) is None


def test_equal_ranks_that_all_hang_are_not_apart() -> None:
    party = Party(7, 7, epoch_batches=12)
    party.settled()
    party.rank_group.granted(GRANT)
    assert party.rank_group.parted(hung=True) is None
    alone = Party(7)
    alone.settled()
    alone.rank_group.granted(GRANT)
    assert alone.rank_group.parted(hung=True) is None


def test_memory_of_devices_is_that_of_the_one_that_needs_most() -> None:
    parts = {0: replace(done(1, 9), device_bytes=5), 1: replace(done(1, 9), device_bytes=7, device_reserved_bytes=8)}
    both = merged_done(parts)
    assert (both.device_bytes, both.device_reserved_bytes) == (7, 8)
    assert merged_done({0: done(1, 9), 1: done(1, 9)}).device_bytes is None
