"""`bucket_cap_mb`: up to how many MiB of gradients DistributedDataParallel exchanges at once. The effect is checked by
what the reducer tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Optional

from ..loop.steps import Steps
from . import GuestContext
from ._exchange import ReducerOption, exchanging, told_by

NAME = "bucket_cap_mb"
CAP, BY_DEFAULT, CONFIG = "bucket_bytes_cap", "bucket_bytes_cap_default", "_bucket_config"
"""Where the model keeps it: its bytes; whether nobody gave it, as older releases of torch note; and what newer ones
make of it."""
MIB = 1 << 20


class BucketCapMb(ReducerOption):
    name = NAME

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        model = exchanging(steps)
        told = {} if model is None else told_by(model)
        return {"gradients": told.get("total_parameter_size_bytes"), "cap": told.get("bucket_cap_bytes")}

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if getattr(getattr(model, CONFIG, None), "per_bucket_bytes_caps", ()):
            return "each bucket has a size of its own (`bucket_cap_mb_list`)"
        return super().obstacle(steps, loader)

    def kept(self, model: Any) -> Dict[str, Any]:
        return {name: getattr(model, name) for name in (CAP, BY_DEFAULT, CONFIG) if hasattr(model, name)}

    def wanted(self, model: Any, value: Any) -> Dict[str, Any]:
        """As where the argument is given: then the first bucket is as large as the others."""
        wanted, size = self.kept(model), int(value) * MIB
        wanted[CAP] = size
        if BY_DEFAULT in wanted:
            wanted[BY_DEFAULT] = False
        if CONFIG in wanted:
            wanted[CONFIG] = replace(wanted[CONFIG], bucket_bytes_cap=size, first_bucket_bytes_cap=size)
        return wanted

    def keep(self, model: Any, kept: Dict[str, Any]) -> None:
        for name, own in kept.items():
            setattr(model, name, own)

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        model = exchanging(context.steps)
        cap = None if model is None else told_by(model).get("bucket_cap_bytes")
        return None if cap is None else bool(cap == int(value) * MIB)


KNOB = BucketCapMb
