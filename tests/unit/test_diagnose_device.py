"""Rules about the device that have more than one side."""

from __future__ import annotations

import pytest
from tests.unit.diagnosable import BY_ID, finding, healthy, on_gpu, shares

from bottleneck_doctor.diagnose import diagnose


@pytest.mark.parametrize(("copies", "said"), [(10, "1 copy a step starts"), (20, "2 copies a step start ")])
def test_one_copy_is_one_and_is_not_said_to_take_what_all_copies_take(copies: int, said: str) -> None:
    found = finding("pageable-copies", on_gpu(healthy(phases=shares(host_to_device=0.08)), pageable_copies=copies))
    assert found is not None
    assert said in found.sentence
    assert found.sentence.endswith("All copies to the device take 8 % of a step.")


@pytest.mark.parametrize(("share", "said"), [(0.0, "computes without"), (0.03, "computes almost without")])
def test_tensor_cores_that_do_a_little_are_not_said_to_do_nothing(share: float, said: str) -> None:
    evidence = on_gpu(healthy(), tensor_core_share=share, tensor_core_eligible_share=0.7)
    clause = diagnose(evidence, [BY_ID["tensor-cores-idle"]]).clauses["tensor-cores-idle"]
    assert clause.startswith(said)
