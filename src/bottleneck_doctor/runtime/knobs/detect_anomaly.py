"""`detect_anomaly`: whether torch records where each operation was called, and searches every gradient for NaN. The
effect is checked by torch's own state while the model computes.

Users mostly switch it with a `with` around a step or a whole training, which restores the state that it found. So
during a window the user's reads and writes of the state are answered from a separate copy: the program sees its own
state, and has it again after the window.
"""

from __future__ import annotations

from typing import Tuple

import torch

from ._switch import Switch

_is_on = torch.is_anomaly_enabled
_checks_nan = torch.is_anomaly_check_nan_enabled
_set = torch.set_anomaly_enabled


class DetectAnomaly(Switch):
    name = "detect_anomaly"

    def __init__(self) -> None:
        super().__init__()
        self._theirs: Tuple[bool, bool] = (False, True)
        """Whether it is on from the view of the user's program, and whether it then looks for NaN."""

    @classmethod
    def is_on(cls) -> bool:
        return bool(_is_on())

    def turn(self, on: bool) -> None:
        _set(on, self._theirs[1])

    def remember(self) -> None:
        self._theirs = (bool(_is_on()), bool(_checks_nan()))
        torch.is_anomaly_enabled = lambda: self._theirs[0]
        torch.is_anomaly_check_nan_enabled = lambda: self._theirs[1]
        torch.set_anomaly_enabled = self._keep

    def turn_back(self) -> None:
        torch.is_anomaly_enabled = _is_on
        torch.is_anomaly_check_nan_enabled = _checks_nan
        torch.set_anomaly_enabled = _set
        _set(*self._theirs)

    def _keep(self, enabled: bool, check_nan: bool = True) -> None:
        self._theirs = (bool(enabled), bool(check_nan))


KNOB = DetectAnomaly
