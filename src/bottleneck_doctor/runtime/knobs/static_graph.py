"""`static_graph`: whether DistributedDataParallel learns in one step which parameters are used, and does not look for
unused ones again. The effect is checked by what the reducer tells.

A step that uses other parameters later would be wrong. So it is tried only where steps leave parameters out, and all
that were seen left out the same ones.
"""

from __future__ import annotations

from typing import Any, Optional

from ..loop.steps import Steps
from . import GuestContext
from ._exchange import SearchOption, exchanging, told_by, unused_bytes, uses_always_the_same

NAME = "static_graph"


class StaticGraph(SearchOption):
    name = NAME

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is not None and model.static_graph:
            return "already on: the graph is static"
        if model is not None and not model.find_unused_parameters:
            return "it does not look for unused parameters, and a static graph would save nothing else"
        obstacle = super().obstacle(steps, loader)
        if obstacle:
            return obstacle
        unused = unused_bytes(steps)
        if unused is None:
            return "it is not known which parameters each step uses"
        if unused == 0:
            return "each step uses all parameters, so nobody needs to look for unused ones"
        return "" if uses_always_the_same(steps) else "not all steps use the same parameters in the same order"

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        model = exchanging(context.steps)
        return None if model is None else bool(told_by(model).get(NAME)) == bool(value)


KNOB = StaticGraph
