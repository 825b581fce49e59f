"""The benchmark of changed rounding tells right from wrong; what it measures is for `benchmarks/rounding.py`."""

from __future__ import annotations

import math
import warnings
from itertools import islice
from typing import Any

import pytest
import torch
from tests.benchmark import load
from torch.utils.data import DataLoader, TensorDataset

from bottleneck_doctor.fixes import catalogue

rounding = load("rounding")
NETS = load("workloads/nets").NETS


def row(spoils: bool = False, **record: Any) -> Any:
    known = {
        "written": [0.5, 0.5],
        "changed": [5.0, 5.0] if spoils else [0.51, 0.5],
        "try": {"failure": "", "verdict": "moved" if spoils else "alike", "seconds": 1.0, "difference": 0.1},
        "run": {"failure": "", "status": "slower", "reason": "", "seconds": 1.0},
    }
    return rounding.Row(rounding.Case("a", "autocast", spoils), {**known, **record})


def test_twenty_are_left_alone_and_three_are_spoilt() -> None:
    assert sum(not net.spoilt for net in NETS.values()) == 20
    assert sum(net.spoilt for net in NETS.values()) == 3
    assert set(rounding.CHANGES.values()) <= {fix.id for fix in catalogue()}


@pytest.mark.parametrize("name", NETS)
def test_each_network_trains(name: str) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, inputs, targets = NETS[name].make()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        losses = []
        for batch, wanted in islice(DataLoader(TensorDataset(inputs, targets), batch_size=32), 3):
            optimizer.zero_grad()
            loss = NETS[name].loss(model(batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert all(map(math.isfinite, losses))
    assert NETS[name].convolves == any(isinstance(layer, torch.nn.Conv2d) for layer in model.modules())


@pytest.mark.parametrize(
    ("verdict", "spoils", "judged"),
    [
        ("same", False, "right"),
        ("alike", False, "right"),
        ("moved", False, "wrong"),
        ("moved", True, "right"),
        ("not_finite", True, "right"),
        ("alike", True, "wrong"),
        ("unknown", True, "open"),
        ("unknown", False, "open"),
    ],
)
def test_what_pairs_say_is_held_against_the_author(verdict: str, spoils: bool, judged: str) -> None:
    told = {"failure": "", "verdict": verdict, "seconds": 1.0, "difference": None}
    assert row(spoils, **{"try": told}).of_pairs == judged
    assert row(spoils, **{"try": {"failure": "it broke", "seconds": 1.0}}).of_pairs == "failed"


@pytest.mark.parametrize(
    ("status", "reason", "spoils", "judged"),
    [
        ("failed", "in 4 of its 4 windows the loss was 9× as high", True, "right"),
        ("failed", "in 4 of its 4 windows the loss was 9× as high", False, "wrong"),
        ("faster", "", True, "wrong"),
        ("slower", "", True, "open"),
        ("faster", "", False, "right"),
        ("failed", "RuntimeError: no", False, "right"),
    ],
)
def test_what_windows_say_is_held_against_the_author(status: str, reason: str, spoils: bool, judged: str) -> None:
    told = {"failure": "", "status": status, "reason": reason, "seconds": 1.0}
    assert row(spoils, run=told).of_windows == judged
    assert rounding.is_right(row(spoils, run=told)) == (judged != "wrong")


def test_a_network_that_is_not_as_its_author_says_is_shown() -> None:
    found = row(changed=[5.0, 5.0])
    assert not found.as_said
    assert not rounding.is_right(found)
    assert "10.000 (NOT as said)" in "\n".join(rounding.report([found]))
    assert row(changed=[None, 0.5]).higher == math.inf


def test_the_report_adds_up() -> None:
    said = "\n".join(rounding.report([row(), row(spoils=True)]))
    assert "by the losses of pairs: 1 of 1 that a change spoils are found (0 open)" in said
    assert "by the losses of windows: 0 of 1 that a change spoils are found (1 open)" in said
    assert "said to be spoilt: designed for at most 1 %; measured 0 of 1" in said
