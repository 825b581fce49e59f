"""When torch's distributions are seen to check their values, so that it may pay to leave that out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Distribution, Normal

from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.distribution_checks import NAME, DistributionChecks
from bottleneck_doctor.runtime.loop.steps import Steps

LOGITS = torch.zeros(2, 3)


@pytest.fixture
def steps() -> Iterator[Steps]:
    """A program that trains, whose distributions are watched."""
    own, plain = Distribution._validate_args, Distribution.__init__
    Distribution.set_default_validate_args(True)  # Other tests of this process may have compiled something.
    made = Steps()
    made.started = 1.0
    DistributionChecks.watch(made)
    yield made
    if NAME in made.noted:
        made.noted[NAME].patches.take_off()
    assert Distribution.__init__ is plain
    Distribution._validate_args = own


def obstacle(steps: Steps) -> str:
    return str(DistributionChecks.facts(steps, "cpu")["obstacle"])


def test_one_that_checks_is_seen(steps: Steps) -> None:
    Categorical(logits=LOGITS)
    assert obstacle(steps) == ""


def test_those_that_check_nothing_or_are_asked_to_are_no_reason(steps: Steps) -> None:
    Normal(0.0, 1.0, validate_args=False)
    Normal(0.0, 1.0, validate_args=True)
    assert "none that checks" in obstacle(steps)


def test_those_that_were_made_before_training_are_no_reason(steps: Steps) -> None:
    steps.started = None
    Normal(0.0, 1.0)
    assert "none that checks" in obstacle(steps)


def test_a_program_may_have_switched_it_off(steps: Steps) -> None:
    Distribution.set_default_validate_args(False)
    Categorical(logits=LOGITS)
    assert obstacle(steps).startswith("already off")


def test_a_compiled_model_is_left_alone(steps: Steps) -> None:
    model = nn.Linear(4, 4)
    model.compile(backend="eager")
    steps.roots.append(model)
    Categorical(logits=LOGITS)
    assert "compiled" in obstacle(steps)


def test_what_a_program_sets_in_a_step_lasts_until_the_next(steps: Steps) -> None:
    context = GuestContext(steps, "cpu")
    knob = DistributionChecks()
    knob.apply(False, context)
    kept = Normal(0.0, 1.0)
    kept.log_prob(torch.tensor(float("nan")))  # type: ignore[no-untyped-call]
    Distribution.set_default_validate_args(True)
    knob.before_step(context)
    assert knob.effect(False, context)
    Normal(0.0, torch.tensor(-1.0))
    knob.revert(context)
    with pytest.raises(ValueError, match="scale"):
        Normal(0.0, torch.tensor(-1.0))
    with pytest.raises(ValueError, match="value"):
        kept.log_prob(torch.tensor(float("nan")))  # type: ignore[no-untyped-call]
