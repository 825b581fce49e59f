"""What guest and supervisor say to each other: one JSON object in each line, with a version and a kind.

The guest sends `Hello`, `Found`, `WindowDone`, `Ended`, `Crashed` and `Trouble`; the supervisor answers each `Found`
and each `WindowDone` with a `Grant` or an `End`. Each rank has a connection of its own. Seconds are seconds of the
guest's monotonic clock.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Dict, List, Optional

PROTOCOL = 1


class ProtocolError(Exception):
    """A line that is not a message of this protocol."""


@dataclass(frozen=True)
class Hello:
    """The first message of a guest that saw training-like work in its process."""

    kind: ClassVar[str] = "hello"
    token: str
    pid: int
    python: str
    torch: str
    devices: List[str] = field(default_factory=list)
    rank: int = 0
    world: int = 1
    local_rank: int = 0
    host: str = ""


@dataclass(frozen=True)
class Site:
    """A place in the user's code: the file as the interpreter names it and a line counted from 1."""

    file: str
    line: int


@dataclass(frozen=True)
class Taker:
    """What takes arguments of a loader that a library makes: the function that the user's line calls (`made` is ""), or
    a class, by its name. `names`: what it calls the DataLoader's arguments; none where the function refuses them all.
    `places`: which of its positional arguments those are, counted from 0, that can be given so. `within`: the argument
    that is a dict of them, "" where each is one of its own; `holds`: what is in it where the call does not give it.
    `called`: the function's name."""

    made: str = ""
    names: Dict[str, str] = field(default_factory=dict)
    places: Dict[str, int] = field(default_factory=dict)
    within: str = ""
    holds: Dict[str, Any] = field(default_factory=dict)
    called: str = ""


@dataclass(frozen=True)
class Found:
    """The training loop, as the live objects show it. `step_seconds`: the steps observed so far, oldest first.

    `position`: batches taken so far (steps in a loop without a loader), which shows whether ranks are at the same step.
    `made_anew`: the script makes a new loader for every epoch.
    """

    kind: ClassVar[str] = "found"
    rung: str
    period: int
    periodic: bool
    step_seconds: List[float]
    wait_seconds: List[float]
    samples_per_step: float
    device: str
    usable_cpus: int
    threads: int
    has_loader: bool
    loader_type: str = ""
    loader_library: str = ""
    """Whose class of loaders it is: `torch`, `fastai`, or the user's own module."""
    dataset_type: str = ""
    iterable: bool = False
    num_workers: int = 0
    prefetch_factor: Optional[int] = None
    persistent_workers: bool = False
    pin_memory: bool = False
    batch_size: Optional[int] = None
    drawn_by: str = ""
    """The classes of what says which rows a batch has, and in which order they come."""
    epoch_batches: Optional[int] = None
    epoch_batches_seen: Optional[int] = None
    made_anew: bool = False
    start_method: str = ""
    own_start_method: bool = False
    """The loader was given it."""
    timeout: float = 0.0
    workers_unsafe: str = ""
    open_handle: str = ""
    """What the dataset held open when its loader was made, and forked workers would share."""
    has_root_module: bool = False
    autocast: str = ""
    grad_scaler: bool = False
    loader_site: Optional[Site] = None
    loader_takers: Optional[List[Taker]] = None
    """What takes its arguments, as far as that is known; None where the user's line makes it."""
    dataset_takers: List[Taker] = field(default_factory=list)
    """What is given its dataset, whose name there is `dataset`, where a library makes it."""
    forward_site: Optional[Site] = None
    forward_path: List[Site] = field(default_factory=list)
    """The user's lines that lead there, from the innermost out."""
    methods: List[List[str]] = field(default_factory=list)
    """Methods of the model where one is called in place of it, as in `model.loss(batch)`: file and name of each."""
    method_site: Optional[Site] = None
    """The user's line that calls one of them; None where the model itself is called."""
    backward_site: Optional[Site] = None
    by_calls: bool = False
    """No loader feeds the loop, and steps take as long as they have calls of the model: what windows count as samples
    are these calls."""
    seen_alone: bool = False
    """Until the loop was found, training took batches from this loader only, in its first epoch: another process of
    the same program comes to this loop first."""
    setup_seconds: float = 0.0
    position: int = 0
    optimizer_steps: int = 0
    steps_before: int = 0
    """Optimizer steps that were seen, where the loop goes by backward passes all the same."""
    first_batch: float = 0.0
    """When the first batch was requested, in Unix time."""
    own: Dict[str, Any] = field(default_factory=dict)
    """The user's own values of knobs, by name, for knobs that have no field of their own here."""
    obstacles: Dict[str, str] = field(default_factory=dict)
    """Why knobs can't be applied to this loop, by name: the end of a sentence; "" if they can. Knobs that can always be
    applied, or about which nothing is known, are not in it."""
    facts: Dict[str, Any] = field(default_factory=dict)
    """What knobs saw of the loop, the model, its optimizers and the machine, by name. Their fixes need it to decide
    whether they apply."""
    run_epochs: Optional[int] = None
    run_steps: Optional[int] = None
    """Epochs, or steps, that the program says it will train for in all; None where it does not say."""
    run_may_end_sooner: bool = False
    trainer: str = ""
    """Whose trainer runs the loop, `lightning` or `transformers`; "" where it is none of these, or not known."""
    trainer_takers: List[Taker] = field(default_factory=list)
    """What takes arguments of Lightning's trainer if a library makes it."""

    @property
    def first_batch_seconds(self) -> Optional[float]:
        """Seconds that training waited for its first batch; None where nothing loads."""
        return self.wait_seconds[0] if self.wait_seconds else None

    @property
    def first_step_seconds(self) -> float:
        """Seconds from the start of the process until its first step began, with its batch at hand."""
        return self.setup_seconds + (self.first_batch_seconds or 0.0)

    @property
    def of_closure(self) -> bool:
        """Whether a step is one call of an optimizer's closure."""
        return self.rung == "closure"

    @property
    def epoch_length(self) -> Optional[int]:
        """Batches of an epoch: as many as were seen, or else as trainer or loader say; None if nobody knows."""
        return self.epoch_batches_seen or self._told_epoch() or self.epoch_batches

    def _told_epoch(self) -> Optional[int]:
        """As many as a trainer says that counts both epochs and steps: it may take a part of its loader's batches."""
        epochs, steps = self.run_epochs, self.run_steps
        return steps // epochs if epochs and steps and steps % epochs == 0 else None

    @property
    def run_ends(self) -> Optional[int]:
        """The number of the last step, as the program says; None if it does not say, or goes on beyond what it says.
        Steps are counted as in `position`."""
        steps, batches = self.run_steps, self.epoch_length
        if steps is None and self.run_epochs is not None and batches is not None:
            steps = self.run_epochs * batches
        return None if steps is None or steps <= self.position else steps


@dataclass(frozen=True)
class Grant:
    """One window to run: `lead_in` steps that do not count, then `steps` timed ones (whole epochs where `epochs` > 0).

    In a window of whole epochs `lead_in` counts epochs as well. `skipped` steps go by before the lead-in.
    `options` are the mode's own (see `modes`).
    A timed part that has lasted `most_seconds` (0: no limit) is over at the next multiple of `unit` steps, or epoch's
    end. A lead-in of steps that has lasted `most_lead_in_seconds` (0: no limit) beyond its first step is over once each
    worker has given a batch.
    A window of steps that has lasted `most_wall_seconds` (0: no limit) in all, with its lead-ins and with the pauses
    between epochs that count as neither, ends at the next step's end.
    `together`: several ranks run this window, so it takes exactly as many steps as are granted, whatever happens.
    `losses`: from now on, losses are kept and told with each window. `keeps_workers`: workers of an earlier window may
    go on in it, and its own in a later one. `keeps_iterables`: so may an iterable dataset, where it left off.
    """

    kind: ClassVar[str] = "grant"
    window: int
    setting: Dict[str, Any]
    mode: str
    lead_in: int
    steps: int
    epochs: int = 0
    options: Dict[str, Any] = field(default_factory=dict)
    most_seconds: float = 0.0
    unit: int = 1
    together: bool = False
    losses: bool = False
    most_lead_in_seconds: float = 0.0
    most_wall_seconds: float = 0.0
    keeps_workers: bool = False
    skipped: int = 0
    keeps_iterables: bool = False

    @property
    def all_steps(self) -> int:
        """Steps of a window that is no window of whole epochs."""
        return self.skipped + self.lead_in + self.steps


@dataclass(frozen=True)
class End:
    """No more windows: end the process now."""

    kind: ClassVar[str] = "end"


@dataclass(frozen=True)
class WindowDone:
    """What a window measured. `status` is `ok`, `failed` or `no_effect`; `reason` says why it is not `ok`.

    `elements`: of the tensors in the timed steps' batches; 0 where nobody counts them.
    `position` counts batches (or steps) as `Found` does; `ahead`: how many more the sampler has given, which workers
    had when windows ended, so that nobody will train on them. `epoch_batches`: how many batches the loop takes in an
    epoch, if the last two epochs agree; the loader may have more. `turns`: epochs that ended in this window, and were
    followed by the next one in it; `turns_collecting`: for how long Python's garbage collector ran between them, in
    seconds. `device_bytes`: the most memory that tensors have had
    on a device so far, `device_reserved_bytes`: that the allocator has held; None where there is no device.
    `peak_bytes`: the most memory that this process has held so far, `workers_bytes`: what its workers share with nobody
    at the end of the window; None where that is not known.
    `around`: what the machine did during the timed part (`surroundings.Surroundings.told`), in the `stretches` of which
    it is made: when each began and ended.
    """

    kind: ClassVar[str] = "window_done"
    window: int
    status: str
    reason: str = ""
    steps: int = 0
    samples: float = 0.0
    elements: int = 0
    seconds: float = 0.0
    lead_in_steps: int = 0
    lead_in_seconds: float = 0.0
    wait_seconds: float = 0.0
    ready_batches: int = 0
    epoch_overhead_seconds: Optional[float] = None
    whole_epochs: int = 0
    turns: int = 0
    turns_collecting: float = 0.0
    queue_change: int = 0
    optimizer_steps: int = 0
    effect: Dict[str, bool] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0
    detail: Dict[str, Any] = field(default_factory=dict)
    position: int = 0
    ahead: int = 0
    epoch_batches: Optional[int] = None
    device_bytes: Optional[int] = None
    device_reserved_bytes: Optional[int] = None
    peak_bytes: Optional[int] = None
    workers_bytes: Optional[int] = None
    around: Dict[str, float] = field(default_factory=dict)
    stretches: List[List[float]] = field(default_factory=list)
    pauses: Dict[str, Any] = field(default_factory=dict)
    """What was seen between epochs (`epoch_pause`), and of evaluations in their midst (`interruptions`), from the start
    of the process to the grant after this window; empty where neither was seen."""
    losses: List[List[float]] = field(default_factory=list)
    """`[step, loss]` of the steps since the last window, if they were asked for; `step`: how many optimizer steps the
    process had made before."""


@dataclass(frozen=True)
class Ended:
    """The last message of a guest whose entrypoint ended by itself: what was seen.

    `batches` were taken with gradients on, and from the training loader once the loop was found (`served`);
    `evaluated` with gradients off, and before that.
    """

    kind: ClassVar[str] = "ended"
    batches: int
    optimizer_steps: int
    backwards: int
    served: bool
    evaluated: int = 0


@dataclass(frozen=True)
class Crashed:
    """An exception of the user's ends this rank: its traceback, which a launcher would hide under its own."""

    kind: ClassVar[str] = "crashed"
    text: str


@dataclass(frozen=True)
class Trouble:
    """The guest itself failed: its traceback. The process ends after this."""

    kind: ClassVar[str] = "trouble"
    text: str


_KINDS: Dict[str, Any] = {kind.kind: kind for kind in (Hello, Found, Grant, End, WindowDone, Ended, Crashed, Trouble)}


def encode(message: Any) -> bytes:
    """One line of JSON."""
    body = {"protocol": PROTOCOL, "kind": message.kind, **asdict(message)}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Any:
    """The message in one line. Raises `ProtocolError` on anything else, also on a message of another version."""
    try:
        body = json.loads(line)
        if not isinstance(body, dict):
            raise ProtocolError("not an object")
        if body.pop("protocol", None) != PROTOCOL:
            raise ProtocolError("another protocol version")
        kind = _KINDS[body.pop("kind")]
        if kind is Found:
            for name in ("loader_site", "forward_site", "method_site", "backward_site"):
                if body.get(name) is not None:
                    body[name] = Site(**body[name])
            body["forward_path"] = [Site(**each) for each in body.get("forward_path", ())]
            for name in ("loader_takers", "dataset_takers", "trainer_takers"):
                if body.get(name) is not None:
                    body[name] = [Taker(**each) for each in body[name]]
        message = kind(**body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"{type(error).__name__}: {error}") from error
    for each in fields(kind):
        if not _fits(getattr(message, each.name), str(each.type)):
            raise ProtocolError(f"{kind.kind}.{each.name} is no {each.type}")
    return message


_PARTS = (Site, Taker)
"""Messages are made of these."""
_PLAIN: Dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "str": str, "Site": Site, "Taker": Taker}


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value is of its field's declared type."""
    outer, _, inner = annotation.rstrip("]").partition("[")
    if outer == "Optional":
        return value is None or _fits(value, inner)
    if outer == "List":
        return isinstance(value, list) and all(_fits(each, inner) for each in value)
    if outer == "Dict":
        return isinstance(value, dict) and all(_fits(each, inner.partition(", ")[2]) for each in value.values())
    if isinstance(value, bool) and outer in ("int", "float"):
        return False
    if isinstance(value, _PARTS):
        parts = [(getattr(value, each.name), str(each.type)) for each in fields(value)]
        return type(value).__name__ == outer and all(_fits(*part) for part in parts)
    return isinstance(value, _PLAIN.get(outer, object))
