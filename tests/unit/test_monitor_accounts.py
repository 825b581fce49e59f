"""Who used how much between two samples, with exact figures: newcomers, the dead, and those who come and go between."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bottleneck_doctor.monitor.accounts import Accounts, Member, Reading
from bottleneck_doctor.monitor.pace import Pace

MAIN, WORKER, OTHER = 10, 11, 12


def main(**fields: Any) -> Member:
    return Member("main", 1, Reading(threads=4, rss_bytes=100, **fields))


def worker(**fields: Any) -> Member:
    return Member("workers", MAIN, Reading(threads=1, rss_bytes=50, **fields))


def test_rates_and_levels_by_role() -> None:
    accounts = Accounts()
    assert accounts.tick(0.0, {MAIN: main(user=5.0), WORKER: worker()}) == {}
    row = accounts.tick(
        0.5,
        {
            MAIN: main(user=5.25, system=0.1, minor_faults=10, major_faults=1, read_bytes=1000, written_bytes=500),
            WORKER: worker(user=0.5, blocked=0.2),
            OTHER: worker(user=0.25, blocked=0.2)._replace(role="workers"),
        },
    )
    assert row["main.cpu_user"] == pytest.approx(0.5)
    assert row["main.cpu_system"] == pytest.approx(0.2)
    assert (row["main.minor_faults"], row["main.major_faults"]) == (20, 2)
    assert (row["main.read_bytes"], row["main.written_bytes"]) == (2000, 1000)
    assert (row["main.threads"], row["main.rss_bytes"], row["main.processes"]) == (4, 100, 1)
    assert (row["workers.processes"], row["workers.threads"], row["workers.rss_bytes"]) == (2, 2, 100)
    assert row["workers.cpu_user"] == pytest.approx(1.5), "a newcomer is charged with all that it has used"
    assert row["workers.blocked_share"] == pytest.approx(0.4), "of the time of a worker, on average"
    assert row["other.processes"] == 0
    assert "other.cpu_user" not in row


def test_what_a_worker_used_after_it_was_last_seen() -> None:
    accounts = Accounts()
    accounts.tick(0.0, {MAIN: main(), WORKER: worker(user=1.0)})
    # It used 0.3 s more, of which a sample saw 0.1.
    accounts.tick(0.1, {MAIN: main(), WORKER: worker(user=1.1)})
    row = accounts.tick(0.1, {MAIN: main(reaped_user=1.3)})
    assert row["workers.processes"] == 0
    assert row["workers.cpu_user"] == pytest.approx(2.0)


def test_a_parent_that_waits_a_sample_later() -> None:
    accounts = Accounts()
    accounts.tick(0.0, {MAIN: main(), WORKER: worker(user=1.0)})
    gone = accounts.tick(0.1, {MAIN: main()})
    assert "workers.cpu_user" not in gone
    row = accounts.tick(0.1, {MAIN: main(reaped_user=1.2)})
    assert row["workers.cpu_user"] == pytest.approx(2.0)


def test_a_child_that_no_sample_saw() -> None:
    accounts = Accounts()
    accounts.tick(0.0, {MAIN: main()})
    row = accounts.tick(0.1, {MAIN: main(reaped_user=0.05)})
    assert row["other.cpu_user"] == pytest.approx(0.5)


def test_a_zombie_is_charged_and_not_counted() -> None:
    accounts = Accounts()
    accounts.tick(0.0, {MAIN: main(), WORKER: worker(user=1.0)})
    row = accounts.tick(0.1, {MAIN: main(), WORKER: worker(user=1.1, alive=False)})
    assert row["workers.cpu_user"] == pytest.approx(1.0)
    assert (row["workers.processes"], row["workers.rss_bytes"]) == (0, 0)
    row = accounts.tick(0.1, {MAIN: main(reaped_user=1.1)})
    assert "workers.cpu_user" not in row, "what is known already is not charged again"


def test_a_gap_stays_a_gap() -> None:
    accounts = Accounts()
    accounts.tick(0.0, {MAIN: main(read_bytes=math.nan), WORKER: worker(read_bytes=3)})
    row = accounts.tick(1.0, {MAIN: main(read_bytes=math.nan, user=1), WORKER: worker(read_bytes=5)})
    assert math.isnan(row["main.read_bytes"])
    assert (row["main.cpu_user"], row["workers.read_bytes"]) == (1, 2)


def test_pace_keeps_its_grid_and_its_share() -> None:
    pace = Pace(0.1, 0.01)
    pace.spent(10.0, 0.0001)
    assert not pace.due(10.09)
    assert pace.wait(10.04) == pytest.approx(0.06)
    pace.spent(10.13, 0.0001)
    assert pace.wait(10.13) == pytest.approx(0.07), "being late once does not move what comes after"
    pace.spent(10.2, 0.005)
    assert pace.wait(10.2) == pytest.approx(0.5), "what is dear is read more seldom"
