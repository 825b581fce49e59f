"""`find_unused_parameters`: whether DistributedDataParallel looks through the graph of each step for parameters that it
did not use. The effect is checked by what the reducer tells.

Without the search, a step that leaves a parameter out ends the program. So it is left out only where the steps that
were seen used all of them.
"""

from __future__ import annotations

from typing import Any, Optional

from ..loop.steps import Steps
from ._exchange import SearchOption, exchanging, unused_bytes

NAME = "find_unused_parameters"


class FindUnusedParameters(SearchOption):
    name = NAME

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is not None and not model.find_unused_parameters:
            return "already on: it does not look for unused parameters"
        obstacle = super().obstacle(steps, loader)
        if obstacle:
            return obstacle
        unused = unused_bytes(steps)
        if unused is None:
            return "it is not known whether each step uses all parameters"
        return "some steps do not use all parameters" if unused else ""


KNOB = FindUnusedParameters
