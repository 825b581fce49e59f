"""What a user writes to make a change for good: a class for each kind of edit. Files in `edits/` write them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.runtime.wire.messages import Found, Site, Taker


def _nothing(value: SettingValue) -> Mapping[str, object]:
    return {}


def _not_known(found: Found) -> Mapping[str, object]:
    return {}


def _by_nobody(found: Found) -> Site | None:
    return None


def _no_statements(value: SettingValue) -> Sequence[str]:
    return ()


def _no_calls(found: Found) -> Sequence[tuple[str, Site]]:
    return ()


@dataclass(frozen=True)
class LoaderArgument:
    """An argument of the DataLoader, called as the knob is. `place`: where it stands among those that are added."""

    place: int
    without: Callable[[SettingValue], Mapping[str, object]] = _nothing
    """Arguments that the DataLoader refuses, or that mean nothing, beside this value; each with the value that is as
    good as none."""
    given: Callable[[Found], Mapping[str, object]] = _not_known
    """What the loader has of these arguments, as far as it shows what it was given."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return None


@dataclass(frozen=True)
class WholeBatches:
    """The loader asks its dataset for whole batches: its sampler makes them, and it has no `batch_size` of its own."""

    text: str

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class ListedSamples:
    """The loader's dataset is a list of all its samples, made before training begins."""

    text: str

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class HeldPlace:
    """What a sample has of its transforms, at `place` of it (`[0]`). `name`: by which they are given it, "" if they are
    given one value; `made`: code that makes it of what they return for it, which is `{}` there."""

    name: str
    place: str
    made: str


@dataclass(frozen=True)
class HeldTransforms:
    """Where a dataset holds its transforms, as code, and what becomes of what they make: `owner` stands between the
    dataset and `name`, an attribute (`transform`) or one of an attribute (`transform.transforms`). `kind`: the type of
    a sample, "" if it is nothing but what the transforms make. A dataset of the library `datasets` is of the kind
    `rows`, and has no more to tell."""

    owner: str
    name: str
    kind: str
    places: tuple[HeldPlace, ...]


@dataclass(frozen=True)
class KeptInputs:
    """The dataset keeps in memory what its transforms are given. `of`: where it holds these; None where that can't be
    written."""

    text: str
    of: Callable[[Found], HeldTransforms | None]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class TrimmedBatches:
    """The loader's collate function cuts a batch to its longest row. `names`: the tensors of a batch that are cut."""

    text: str
    names: Callable[[Found], Sequence[str]]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class GroupedRows:
    """The loader's batches are made by a sampler that puts rows of similar length together. `part`: what of a sample is
    as long as its row, as code behind a sample (`["input_ids"]`); None where that is not known."""

    text: str
    part: Callable[[Found], str | None]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class Transformed:
    """What becomes of the last transforms of the samples, as code: `transforms` leave their chain, `instead` takes
    their place ("": nothing), and `on_batch` are done to the batch, at `places` of it (`[0]`)."""

    transforms: tuple[str, ...]
    instead: str
    on_batch: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class TransformedBatches:
    """The loader's collate function does the last transforms of the samples to the batch that it made. `on_device`: the
    value with which the training loop does them, after it has moved the batch, and what is written there."""

    text: str
    of: Callable[[Found], Transformed]
    on_device: tuple[str, str]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.on_device[1] if value == self.on_device[0] else self.text


@dataclass(frozen=True)
class SmallerPictures:
    """How pictures are decoded smaller: with no side of fewer pixels than `side`, or divided by `factor`. `library`:
    "Pillow" or "OpenCV". `calls`: the last name of what opens them, and where, as far as it is a line of the user's.
    `folder`: whether it is a line of `ImageFolder`."""

    library: str
    side: int
    factor: int
    calls: tuple[tuple[str, Site], ...]
    folder: bool = False


@dataclass(frozen=True)
class ReducedPictures:
    """JPEG pictures are decoded at a part of their size where they are opened."""

    text: str
    of: Callable[[Found], SmallerPictures | None]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class Call:
    """A call before training begins. `text` holds `{value}` where the value goes. `overruled_by`: where a library makes
    the same call when training begins, if one does."""

    text: str
    overruled_by: Callable[[Found], Site | None] = _by_nobody

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text.format(value=value)


@dataclass(frozen=True)
class OwnFunction:
    """A function of the user's own takes the place of one of torch's before training begins. `function`: its
    definition; `text`: the statement that puts it there; `more`: statements behind it that a value asks for."""

    name: str
    function: str
    text: str
    more: Callable[[SettingValue], Sequence[str]] = _no_statements

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class Callback:
    """What a callback of Ultralytics' trainer does: at `event`, one of the trainer's own names, it calls `code`, in
    which the trainer is called `trainer`."""

    event: str
    code: str


@dataclass(frozen=True)
class AutocastBlock:
    """The forward pass and the loss under `with torch.autocast(...)`; the value names the type."""

    def code(self, value: SettingValue, device: str) -> str | None:
        if not isinstance(value, str) or not value.isidentifier():
            return None
        where = json.dumps(device.split(":")[0]) if device else "device"
        return f"torch.autocast({where}, dtype=torch.{value})"


@dataclass(frozen=True)
class MemoryFormat:
    """The model, and what it is called with, in the memory format of this name."""

    name: str

    def code(self, value: SettingValue, device: str) -> str | None:
        return f"model.to(memory_format=torch.{self.name})"


@dataclass(frozen=True)
class OfModel:
    """A method of the model, called once before the training loop. `call`: that call, by the value."""

    call: Callable[[SettingValue], str]

    def code(self, value: SettingValue, device: str) -> str | None:
        return f"model.{self.call(value)}"


@dataclass(frozen=True)
class Uncompiled:
    """Nothing that the user's files compile with torch is compiled."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return "TORCH_COMPILE_DISABLE=1"


@dataclass(frozen=True)
class Switch:
    """Something of torch's that is on or off in the whole process, and that the user has written somewhere. `text` is
    what sets it, and may hold `{value}`; the others are the ways in which a user may have written that it is on."""

    text: str
    calls: tuple[str, ...] = ()
    """Names of functions that take it as their first argument, without what they are attributes of."""
    arguments: tuple[str, ...] = ()
    """Arguments by which a trainer is told, whatever that trainer is called."""
    attribute: str = ""
    """What it is assigned to: the end of a dotted name."""
    contexts: tuple[str, ...] = ()
    """Names of functions that switch it on without an argument, for as long as a `with` lasts."""
    otherwise: str = ""
    """What to do where it is written in none of the files that are known, as a sentence without its end; "": set it
    before training begins."""
    inserted: bool = False
    """Whether it is written before training begins where it is written nowhere, so that torch's default holds."""
    overruled_by: Callable[[Found], Site | None] = _by_nobody
    """Where a library sets it when training begins, if one does."""
    wraps: Callable[[Found], Sequence[tuple[str, Site]]] = _no_calls
    """The user's own calls that switch it on, by the last name of what is called, whose first argument is what they
    wrap. Where there are any, these are called directly, and nothing else is changed."""
    wrapper_arguments: tuple[str, ...] = ()
    """Names of arguments of such calls that what they wrap has not."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text.format(value=value)


@dataclass(frozen=True)
class Made:
    """Where the guest saw something being made. `calls`: the names of its classes, and the lines that call them,
    whatever they write there. `through`: the libraries that make it for the user, and the lines that call those."""

    calls: Sequence[tuple[str, Site]] = ()
    through: Sequence[tuple[str, Site]] = ()
    takers: Sequence[Taker] = ()
    """What takes its arguments where a library makes it."""


def _seen_nowhere(found: Found) -> Made:
    return Made()


@dataclass(frozen=True)
class Argument:
    """Arguments of a call that the user makes somewhere, such as that of an optimizer's class. `said`: what they write
    there, or what there is afterwards where no argument does it. `otherwise`: what to do where no such call is found or
    no argument does it, as a sentence without its end."""

    said: str
    otherwise: str
    calls: tuple[str, ...]
    """Names of what is called, without what they are attributes of."""
    given: tuple[tuple[str, object], ...] = ()
    """Names of arguments, and their values."""
    without: Mapping[str, object] = field(default_factory=dict)
    """Arguments that are refused beside them, each with the value that is as good as none."""
    of: tuple[str, ...] = ()
    """Names of modules that such a call is an attribute of, if it is one at all; (): any."""
    made: Callable[[Found], Made] = _seen_nowhere
    """Where such calls were seen, for files that have none of that name."""
    takes_value: str = ""
    """The name of an argument that is given the value of the setting: `said` and `otherwise` hold `{value}`."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.under(value).said

    def under(self, value: SettingValue) -> Argument:
        """The same for one value of the setting."""
        if not self.takes_value:
            return self
        said, otherwise = (text.format(value=value) for text in (self.said, self.otherwise))
        given = (*self.given, (self.takes_value, value))
        return replace(self, said=said, otherwise=otherwise, given=given, takes_value="")


@dataclass(frozen=True)
class Removal:
    """Calls of the user's that are taken out. `text` says so where there is no line to show."""

    text: str
    calls: Callable[[Found], Sequence[tuple[str, Site]]]
    """What is called, as `gc.collect`, and where."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class GivenArgument:
    """An argument that calls of the user's are given. `position`: where it stands among the values without a name."""

    name: str
    value: bool
    position: int
    calls: Callable[[Found], Sequence[tuple[str, Site]]]
    """The last name of what is called, and where."""

    def code(self, value: SettingValue, device: str) -> str | None:
        return f"{self.name}={self.value}"


@dataclass(frozen=True)
class AttentionCall:
    """torch's function in the place of attention that is written out at known places. `how`: what to do where that is
    not certain, as a sentence without its end."""

    text: str
    how: str
    places: Callable[[Found], Sequence[Site]]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class RecordedValues:
    """Numbers that a loop takes out of tensors at known lines, to record them, are taken out after it. `how`: what to
    do where that is not certain, as a sentence without its end."""

    text: str
    how: str
    places: Callable[[Found], Sequence[Site]]

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class CopiedAhead:
    """The training loop goes through batches that a stream of its own copies to the device, one ahead."""

    text: str

    def code(self, value: SettingValue, device: str) -> str | None:
        return self.text


@dataclass(frozen=True)
class BeforeLoop:
    """Lines that are written before the training loop, once all is made. They hold `{value}` where the value goes."""

    lines: tuple[str, ...]
    imports: str
    """The module that they need."""

    def of(self, value: SettingValue) -> list[str]:
        """The lines for a value."""
        return [each.format(value=value) for each in self.lines]

    def code(self, value: SettingValue, device: str) -> str | None:
        return "; ".join(self.of(value))


@dataclass(frozen=True)
class Variables:
    """Variables that are set before the program starts, by the value."""

    of: Callable[[SettingValue], Mapping[str, str]]

    def code(self, value: SettingValue, device: str) -> str | None:
        return " ".join(f"{name}={shlex.quote(text)}" for name, text in self.of(value).items()) or None

    def called(self, value: SettingValue) -> str | None:
        """What a sentence calls them: `MALLOC_…=…` for several whose names begin alike, else all of them; None where
        nothing is set."""
        names = list(self.of(value))
        words = zip(*(name.split("_") for name in names), strict=False)
        alike = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, words)]
        return f"{'_'.join(alike)}_…=…" if len(names) > 1 and alike else self.code(value, "")


Edit = (
    LoaderArgument
    | WholeBatches
    | ListedSamples
    | KeptInputs
    | TrimmedBatches
    | GroupedRows
    | TransformedBatches
    | ReducedPictures
    | Call
    | OwnFunction
    | BeforeLoop
    | AutocastBlock
    | MemoryFormat
    | OfModel
    | Uncompiled
    | Switch
    | Argument
    | Removal
    | GivenArgument
    | AttentionCall
    | RecordedValues
    | CopiedAhead
    | Variables
)
"""How a user makes the change for good. `code(value, device)` is what they write outside of the DataLoader's arguments
(None: nothing); `device` as in a `Baseline` (`cuda:0`), "" where it is not known."""
