"""`device_prefetch`: each batch is copied to the device while the one before it is computed. The effect is checked by
the number of tensors that the loop moved and that were there already.

The loop gets its batch as the loader made it. What its `.to(device)` or `.cuda()` returns is the copy, which a stream
beside that of the training has made; whatever else it does with the batch is as without it. A tensor that was changed
since it was copied is copied again, and so is one that is moved twice, since nobody may see that both are one.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch

from ..loop.batches import tensors_of
from ..process.patches import Patches
from . import GuestContext, Knob

NAME = "device_prefetch"


class _Copied(NamedTuple):
    """A tensor of a batch, its version when it was copied, and the copy."""

    tensor: Any
    version: int
    copy: Any


class DevicePrefetch(Knob):
    name = NAME
    layer = "loader"

    def __init__(self) -> None:
        self._there: Dict[int, _Copied] = {}
        """Copies of the batch that the loop has, by the identities of its tensors."""
        self._served = 0
        self._patches = Patches()
        self._stream: Any = None
        self._device = torch.device("cpu")

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        self._device = torch.device(context.device)
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        thread = threading.get_ident()
        self._patches.put(torch.Tensor, "to", lambda original: self._moving(original, _target_of_to, thread))
        self._patches.put(torch.Tensor, "cuda", lambda original: self._moving(original, _target_of_cuda, thread))

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()
        self._there.clear()

    def fetching(self, value: Any, fetch: Callable[[], Any], context: GuestContext) -> Callable[[], Any]:
        return _Ahead(fetch, self._copied, self._hand_over) if value else fetch

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._served > 0 if value else None

    # -- one batch -------------------------------------------------------------------------------------------------

    def _copied(self, batch: Any) -> List[_Copied]:
        """Begin to copy a batch, beside what the device computes."""
        tensors = [each for each in tensors_of(batch) if self._may_copy(each)]
        if self._stream is None:
            return [_Copied(each, each._version, each.to(self._device)) for each in tensors]
        training = torch.cuda.current_stream(self._device)
        with torch.cuda.stream(self._stream):
            copies = [_Copied(each, each._version, each.to(self._device, non_blocking=True)) for each in tensors]
        for each in copies:
            # Its memory is the other stream's, which would give it away while the training still computes with it.
            each.copy.record_stream(training)
        return copies

    def _may_copy(self, tensor: Any) -> bool:
        if tensor.device.type != "cpu" or tensor.is_inference() or tensor.requires_grad:
            return False
        # A copy from other memory would make Python wait for it.
        return self._stream is None or bool(tensor.is_pinned())

    def _hand_over(self, copies: List[_Copied]) -> None:
        """The loop gets the batch that these are copies of."""
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)
        self._there = {id(each.tensor): each for each in copies}

    # -- what the loop calls ---------------------------------------------------------------------------------------

    def _moving(self, original: Any, target: Callable[..., Any], thread: int) -> Any:
        is_compiling = torch.compiler.is_compiling

        def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._there or is_compiling() or threading.get_ident() != thread:
                return original(tensor, *args, **kwargs)
            known = self._there.get(id(tensor))
            if known is None or known.tensor is not tensor or not self._is_here(target, args, kwargs):
                return original(tensor, *args, **kwargs)
            del self._there[id(tensor)]
            if tensor._version != known.version:
                return original(tensor, *args, **kwargs)
            self._served += 1
            return original(known.copy, *args, **kwargs)  # It may ask for another type, too.

        return move

    def _is_here(self, target: Callable[..., Any], args: Any, kwargs: Any) -> bool:
        """Whether a call moves its tensor to the device of the copies."""
        try:
            wanted = target(*args, **kwargs)
        except Exception:  # Then the call itself says what is wrong with it.
            return False
        if wanted is None or wanted.type != self._device.type:
            return False
        return bool(_index(wanted) == _index(self._device))


class _Ahead:
    """Hands over batches of `fetch`, each of which was fetched, and its copying begun, before the one in front of it
    was handed over. Raises `StopIteration` after the last."""

    def __init__(
        self,
        fetch: Callable[[], Any],
        copied: Callable[[Any], List[_Copied]],
        hand_over: Callable[[List[_Copied]], None],
    ) -> None:
        self._fetch = fetch
        self._copied = copied
        self._hand_over = hand_over
        self._next: Optional[List[Any]] = None
        self._over = False

    def __call__(self) -> Any:
        batch, copies = self._next or self._look_ahead()
        # Before the next copy begins, for which the training need not wait.
        self._hand_over(copies)
        try:
            self._next = None if self._over else self._look_ahead()
        except StopIteration:
            self._next, self._over = None, True
        return batch

    def _look_ahead(self) -> List[Any]:
        if self._over:
            raise StopIteration
        batch = self._fetch()
        return [batch, self._copied(batch)]


def _target_of_to(*args: Any, **kwargs: Any) -> Any:
    """The device that `tensor.to(...)` moves to; None if it moves nowhere."""
    other = args[0] if args else kwargs.get("other")
    if isinstance(other, torch.Tensor):
        return other.device
    given = {name: value for name, value in kwargs.items() if name not in ("copy", "memory_format")}
    return torch._C._nn._parse_to(*args, **given)[0]


def _target_of_cuda(device: Any = None, *_: Any, **__: Any) -> Any:
    if device is None:
        return torch.device("cuda")
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)


def _index(device: Any) -> Any:
    if device.index is None and device.type == "cuda":
        return torch.cuda.current_device()
    return device.index


KNOB = DevicePrefetch
