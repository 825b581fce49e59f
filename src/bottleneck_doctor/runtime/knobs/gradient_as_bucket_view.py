"""`gradient_as_bucket_view`: whether gradients lie in the memory in which DistributedDataParallel exchanges them, and
are not copied there and back. The effect is checked by what the reducer tells."""

from __future__ import annotations

from typing import Any, Optional

from ..loop.steps import Steps
from ._exchange import ReducerOption, exchanging

NAME = "gradient_as_bucket_view"


class GradientAsBucketView(ReducerOption):
    name = NAME

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is not None and model.gradient_as_bucket_view:
            return "already on: gradients lie where they are exchanged"
        return super().obstacle(steps, loader)


KNOB = GradientAsBucketView
