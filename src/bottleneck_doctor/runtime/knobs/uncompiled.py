"""`uncompiled`: what the program compiles with torch runs operation by operation. The effect is checked by torch's own
stance.

What was compiled is kept, so later windows run it again and compile nothing. Tensors that compiled code never made need
memory, so the window is given up where that runs short.
"""

from __future__ import annotations

from typing import Any, Literal, Optional

import torch

from ..loop.steps import Steps
from ..process.compiled import compiled_graphs
from . import GuestContext, Knob, Refused
from ._memory import MemoryLimit
from ._modules import most_versions, recompiled

EAGER: Literal["force_eager"] = "force_eager"
_MOST_TOLD = 3


class Uncompiled(Knob):
    name = "uncompiled"

    def __init__(self) -> None:
        self._held: Any = None
        """Torch's own context, which knows the stance before."""
        self._memory: Optional[MemoryLimit] = None

    def apply(self, value: Any, context: GuestContext) -> None:
        if _stance() == EAGER:
            raise Refused("the script has switched compiling off itself")
        self.gave_up = ""
        self._memory = MemoryLimit(context.device)
        self._held = torch.compiler.set_stance(EAGER)

    def before_step(self, context: GuestContext) -> None:
        if self._memory is None:
            return
        self.gave_up = self._memory.short()
        if self.gave_up:
            self.revert(context)
        elif _stance() != EAGER:
            torch.compiler.set_stance(EAGER)

    def revert(self, context: GuestContext) -> None:
        held, self._held, self._memory = self._held, None, None
        if held is not None:
            held.__exit__(None, None, None)

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return _stance() == EAGER

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        """Nothing of ours is switched before the loop is found: what was compiled again by then is the program's."""
        again = recompiled()
        return {"recompiled": again[:_MOST_TOLD], "most_versions": most_versions()} if again else None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        if not compiled_graphs():
            return "already on: nothing of the training is compiled"
        if not hasattr(torch.compiler, "set_stance"):
            return "what is compiled can be run without compiling from torch 2.6 on"
        return ""


KNOB = Uncompiled


def _stance() -> str:
    # There is no public way to ask. Only what has compiled something gets here, so dynamo is there.
    from torch._dynamo import eval_frame

    return str(getattr(getattr(eval_frame, "_stance", None), "stance", "default"))
