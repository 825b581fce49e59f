"""The call in which arguments of a loader are set: the one that makes it, or that tells a library how to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Definition, Expression
from bottleneck_doctor.edits.origin.follower import Defined, Follower
from bottleneck_doctor.edits.origin.instance import Instance
from bottleneck_doctor.edits.tree import SourceTree, code, dotted, last_name, names_of, said
from bottleneck_doctor.runtime.wire.messages import Taker

POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)
"""Order of positional parameters of `torch.utils.data.DataLoader`, from torch 1.0 to now."""

Given = dict[str, cst.BaseExpression]
"""What a call of the DataLoader is given, by name."""
_LOADER_KEYWORDS = frozenset(POSITIONS[1:]) | {"prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"}
_TRAINS = ("fit", "fit_transform", "learn", "train")
"""Methods of libraries that make a loader and train. They may take `batch_size=`, and still not all that it takes."""
_OF_TRAINING = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")


@dataclass(frozen=True)
class OwnNames:
    """What a library calls arguments of the DataLoader, which it takes by name. `otherwise`: what to do about one that
    it does not have; `{wanted}` and `{name}` are filled in."""

    names: Mapping[str, str]
    otherwise: str


TRAINING_ARGUMENTS = OwnNames(
    {name: f"dataloader_{name}" for name in _OF_TRAINING},
    "Return a DataLoader with {wanted} from get_train_dataloader of the trainer: no argument sets {name}.",
)
"""Transformers' `TrainingArguments`, and what is made of them."""
TRAINERS = ("Trainer", "Seq2SeqTrainer")
"""Its trainers, by name."""
TRANSFORMERS = ("transformers", "trl", "sentence_transformers", "optimum")
"""Libraries whose trainers take them."""
ULTRALYTICS = OwnNames({"num_workers": "workers"}, "Ultralytics has no argument that sets {wanted}.")
"""`YOLO(...).train(...)`."""
FASTAI_TAKES = ("num_workers", "pin_memory", "persistent_workers", "timeout")
"""What fastai's DataLoaders take of it."""


@dataclass(frozen=True)
class Target:
    """The call in which arguments are set. `own`: where it has names of its own for them. `knows_positions`: it takes
    them in the DataLoader's order. `beneath`: the `partial(...)` that it calls."""

    at: Expression
    call: cst.Call
    own: OwnNames | None = None
    knows_positions: bool = False
    beneath: Expression | None = None
    members: Definition | None = None
    """What has the arguments as its parts, where no call has them."""
    within: str = ""
    """The argument of the call that is a dict of them; "" where each is one of its own."""
    holds: Mapping[str, object] = field(default_factory=dict)
    """What that has in it where the call does not give it."""

    def called(self, name: str) -> str:
        """What an argument of the DataLoader is called here."""
        return name if self.own is None else self.own.names.get(name, name)


@dataclass(frozen=True)
class Unclear:
    """Why it is not clear which call that is. `{wanted}` is filled in."""

    file: str
    line: int
    reason: str


def target_on(path: str, tree: SourceTree, line: int, follower: Follower) -> Target | Unclear | None:
    """The call for the loader that is made on `line`, any line of its call; None where there is no call there."""
    calls = [call for call in loader_calls(tree, line) if makes_loader(tree, call) or not _refuses(follower)]
    if len(calls) > 1:
        return Unclear(
            path, tree.lines(calls[0])[0], "Several loaders are made on this line. Set {wanted} in the training loader."
        )
    if calls:
        return _plain(Expression(path, tree, calls[0]), calls[0])
    there = tree.calls_on(line)
    made = {call: _class_or_partial(Expression(path, tree, call), call, follower) for call in there}
    known = [each for each in made.values() if each is not None]
    if len(known) == 1:
        return known[0]
    if not there:
        return None
    outermost = tree.called_from(line)[0]
    return made[outermost] or _handed_on(Expression(path, tree, outermost), outermost, follower)


def trainer_on(
    path: str, tree: SourceTree, line: int, names: Sequence[str], follower: Follower
) -> Target | Unclear | None:
    """The call that has the arguments of the transformers' trainer whose `train()` is called on `line`; None where no
    such trainer is called there. `names`: of arguments that are to be set, as `TrainingArguments` has them."""
    for at, call, trainer in _trainers_on(path, tree, line, follower):
        if _is_of_transformers(*trainer, follower):
            target = _of_its_arguments(at, call, *trainer, follower)
            if target is None:
                return Unclear(path, line, "Give the trainer's arguments {wanted}.")
            return replace(target, own=OwnNames({name: name for name in names}, ""))
    return None


def trainer_made(path: str, tree: SourceTree, line: int, follower: Follower) -> Expression | None:
    """The call that makes the trainer of transformers' own whose `train()` is called on `line`; None where that is
    none. Trainers of other libraries take datasets of one kind only."""
    for _, _, (made, there) in _trainers_on(path, tree, line, follower):
        name = _trainers_class(made, there, follower)
        if name in TRAINERS and _is_imported(there, "transformers", name):
            return there
    return None


def _trainers_on(
    path: str, tree: SourceTree, line: int, follower: Follower
) -> Iterator[tuple[Expression, cst.Call, tuple[cst.Call, Expression]]]:
    """The calls of a `train()` on `line`, each with the call that makes what it is called of, as `_trainer` has it."""
    for call in tree.calls_on(line):
        if last_name(call.func) == "train":
            at = Expression(path, tree, call)
            trainer = _trainer(at, call, follower)
            if trainer is not None:
                yield at, call, trainer


def loader_calls(tree: SourceTree, line: int) -> list[cst.Call]:
    """The call on `line` that makes a loader, by its name or by its arguments; several where the line alone can't tell
    them apart, none where all that is there calls something else."""
    calls = tree.calls_on(line)
    named = [call for call in calls if makes_loader(tree, call)]
    alike = named or [
        call
        for call in calls
        if last_name(call.func) not in _TRAINS
        if any(each.keyword and each.keyword.value in _LOADER_KEYWORDS for each in call.args)
    ]
    begun = [call for call in alike if tree.lines(call)[0] == line] or alike
    return [call for call in begun if not any(other is not call and tree.holds(call, other) for other in begun)]


def makes_loader(tree: SourceTree, call: cst.Call) -> bool:
    """Whether a call makes a loader, by the name of what it calls."""
    name = last_name(call.func)
    return name.endswith("Loader") or name in _aliases(tree)


def _aliases(tree: SourceTree) -> set[str]:
    """Other names that the file has for classes of loaders."""
    return {
        alias.evaluated_alias
        for node in tree.nodes(cst.ImportFrom)
        for alias in names_of(node)
        if alias.evaluated_alias and alias.evaluated_name.endswith("DataLoader")
    }


def _plain(at: Expression, call: cst.Call) -> Target:
    name = last_name(call.func)
    return Target(at, call, knows_positions=name == "DataLoader" or name in _aliases(at.tree))


def _handed_on(at: Expression, call: cst.Call, follower: Follower) -> Target | Unclear:
    """The call that something else on the line leads to: a loader that is wrapped, a trainer's arguments."""
    wrapped = list(_wrapped(at, call, follower))
    training = [target for words, target in wrapped if "train" in words.lower()] or [target for _, target in wrapped]
    if len(training) == 1:
        return training[0]
    unclear = Unclear(at.path, at.line, f"Set {{wanted}} where `{said(call.func)}(...)` makes its DataLoader.")
    return _trained(at, call, follower) or taken(at, call, follower.running.takers or (), follower) or unclear


def _refuses(follower: Follower) -> bool:
    """Whether the function that the user's line calls is known to take no arguments of the loader that a library makes
    there."""
    return any(not each.made and not each.names for each in follower.running.takers or ())


def taken_on(path: str, line: int, takers: Sequence[Taker], follower: Follower) -> Target | None:
    """As `taken`, for the outermost call in which a frame has this line."""
    tree = follower.tree(path)
    there = [] if tree is None else tree.called_from(line)
    return taken(Expression(path, tree, there[0]), there[0], takers, follower) if tree is not None and there else None


def taken(at: Expression, call: cst.Call, takers: Sequence[Taker], follower: Follower) -> Target | None:
    """The call that was seen to take arguments of what a library makes, as of a loader: this one, or the one that makes
    an object which it is called of, or which it is given."""
    found: list[tuple[Taker, Expression, cst.Call]] = []
    wanted = set(follower.running.own)
    for taker in takers:
        there = made_as(taker.made, at, call, follower) if taker.made else _named_within(taker.called, at, call)
        names = {} if there is None else _left(taker, there[1])
        if there is not None and names:
            found.append((replace(taker, names=names), *there))
    if not found:
        return None
    # One may take a batch's size, and another one all else.
    taker, there_at, made = max(found, key=lambda each: len(wanted & set(each[0].names)))
    otherwise = f"Set {{wanted}} where `{said(made.func)}(...)` makes its DataLoader: no argument of it sets {{name}}."
    return Target(there_at, made, own=OwnNames(taker.names, otherwise), within=taker.within, holds=taker.holds)


def _named_within(name: str, at: Expression, call: cst.Call) -> tuple[Expression, cst.Call]:
    """The only call of this name in another one, as in `print(net.fit(rows))`; that one where there are none, since a
    decorated function goes by another name, or several."""
    named = [each for each in at.tree.nodes(cst.Call, within=call) if last_name(each.func) == name]
    return (at.at(named[0]), named[0]) if len(named) == 1 else (at, call)


def made_as(name: str, at: Expression, call: cst.Call, follower: Follower) -> tuple[Expression, cst.Call] | None:
    """The call that makes an object of a class of this name, and where it is written: what this call is of or is given,
    or else the only one of its file. None where that is not known, or there are several."""
    if last_name(call.func) == name:
        return at, call
    used = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    made = {}
    for each in (*used, *(each.value for each in call.args)):
        known = follower.defined(at.at(each))
        there = known.call if isinstance(known, Instance) else known
        if isinstance(there, Expression) and isinstance(there.node, cst.Call) and last_name(there.node.func) == name:
            made[there.path, there.line] = (there, there.node)
    if not made:
        alike = [each for each in at.tree.nodes(cst.Call) if last_name(each.func) == name]
        return (at.at(alike[0]), alike[0]) if len(alike) == 1 else None
    return next(iter(made.values())) if len(made) == 1 else None


def _left(taker: Taker, call: cst.Call) -> dict[str, str]:
    """What a call can be given by name: none that may be among its positional arguments."""
    by_place = [each for each in call.args if each.keyword is None and each.star != "**"]
    given = 1000 if any(each.star for each in by_place) else len(by_place)
    return {name: called for name, called in taker.names.items() if taker.places.get(name, given) >= given}


def _class_or_partial(at: Expression, call: cst.Call, follower: Follower) -> Target | None:
    """The call itself, where it makes a loader by another name."""
    if code(call.func) == "super().__init__":
        function = at.tree.function(call)
        owner = None if function is None else follower.class_of(at.path, at.tree, function)
        return None if owner is None else _of_class(at, call, owner)
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    if any(makes_loader(at.tree, cst.Call(each.node)) for each in follower.assigned(at.at(call.func))):
        return Target(at, call, knows_positions=True)
    called = follower.defined(at.at(call.func))
    if isinstance(called, Defined):
        return _of_class(at, call, called)
    if (
        isinstance(called, Expression)
        and isinstance(called.node, cst.Call)
        and last_name(called.node.func) == "partial"
    ):
        first = called.node.args[:1]
        if first and makes_loader(called.tree, cst.Call(first[0].value)):
            return Target(at, call, knows_positions=True, beneath=called)
    return None


def _of_class(at: Expression, call: cst.Call, owner: Defined) -> Target | None:
    """The call that makes an instance of a class of loaders."""
    bases = [last_name(each.value) for each in owner.bases]
    if not any(each.endswith("Loader") for each in bases):
        return None
    return Target(at, call, knows_positions="DataLoader" in bases)


def _wrapped(at: Expression, call: cst.Call, follower: Follower) -> Iterator[tuple[str, Target]]:
    """The calls that make what is handed to this one, as `accelerator.prepare(model, loader)` has it, with the words
    that hand it."""
    for each in call.args:
        here = at.at(each.value)
        assigned: list[Definition | None] = [*follower.assigned(here)]
        for made in assigned or [follower.defined(here)]:
            if isinstance(made, Expression) and isinstance(made.node, cst.Call) and makes_loader(made.tree, made.node):
                yield code(each.value), _plain(made, made.node)


def _trained(at: Expression, call: cst.Call, follower: Follower) -> Target | Unclear | None:
    """Of transformers' `trainer.train()`: the `TrainingArguments(...)` of its trainer, or what stands for them. Of
    `YOLO(...).train(...)`: that call. Of mmengine's `runner.train()`: what tells its Runner of the loader."""
    trainer = _trainer(at, call, follower)
    if trainer is None or last_name(trainer[0].func) == "from_cfg":
        return _of_a_config(at, call, follower)
    if last_name(call.func) == "train" and dotted(trainer[0].func) == "Runner" and _is_imported(trainer[1], "mmengine"):
        return _of_its_runner(*trainer, follower)
    if last_name(call.func) == "train" and _is_imported(trainer[1], "ultralytics"):
        return Target(at, call, own=ULTRALYTICS)
    return None if _trainers_class(*trainer, follower) is None else _of_its_arguments(at, call, *trainer, follower)


def _of_its_runner(made: cst.Call, there: Expression, follower: Follower) -> Target | Unclear:
    """The `dict(...)` that tells mmengine's `Runner(...)` of the loader that trains."""
    given = next((each.value for each in made.args if each.keyword and each.keyword.value == "train_dataloader"), None)
    told = [] if given is None else follower.assigned(there.at(given)) or [there.at(given)]
    made_of = told[0].node if len(told) == 1 else None
    if isinstance(made_of, cst.Call) and dotted(made_of.func) == "dict":
        return Target(told[0], made_of)
    return Unclear(there.path, there.line, "Set {wanted} in the train_dataloader of mmengine's Runner.")


def _of_a_config(at: Expression, call: cst.Call, follower: Follower) -> Unclear | None:
    """What to do where mmengine makes its Runner of a config."""
    used = call.func.value if isinstance(call.func, cst.Attribute) and last_name(call.func) == "train" else None
    made = [] if used is None else follower.assigned(at.at(used))
    if not any(
        isinstance(each.node, cst.Call) and last_name(each.node.func) == "from_cfg" and _is_imported(each, "mmengine")
        for each in made
    ):
        return None
    how = "Set {wanted} in the train_dataloader of the config, or by `--cfg-options` where the script takes them."
    return Unclear(at.path, at.line, how)


def _of_its_arguments(
    at: Expression, call: cst.Call, made: cst.Call, there: Expression, follower: Follower
) -> Target | None:
    """The call that makes the arguments of a trainer, or what stands for them. `made`: the call that makes the trainer,
    which is written `there`."""
    positional = [each.value for each in made.args if each.keyword is None and not each.star]
    named = [each.value for each in made.args if each.keyword is not None and each.keyword.value == "args"]
    told = [follower.defined(there.at(each)) for each in (*named, *positional[1:2])]
    options = next((each.call if isinstance(each, Instance) else each for each in told), None)
    if isinstance(options, Expression) and isinstance(options.node, cst.Call) and _makes_an_object(options.node):
        return Target(options, options.node, own=TRAINING_ARGUMENTS)
    if options is None or isinstance(options, Expression):
        return None
    return Target(at, call, own=TRAINING_ARGUMENTS, members=options)


def _trainer(at: Expression, call: cst.Call, follower: Follower) -> tuple[cst.Call, Expression] | None:
    """The call that makes what a method is called of, and where it is written; None where that is not known."""
    if not isinstance(call.func, cst.Attribute):
        return None
    made = follower.defined(at.at(call.func.value))
    made = made.call if isinstance(made, Instance) else made
    return (made.node, made) if isinstance(made, Expression) and isinstance(made.node, cst.Call) else None


def _is_of_transformers(made: cst.Call, there: Expression, follower: Follower) -> bool:
    """Whether a call makes a trainer of one of these libraries, or of a class of the user's that is made of one."""
    name = _trainers_class(made, there, follower)
    return name is not None and any(_is_imported(there, each, name) for each in TRANSFORMERS)


def _trainers_class(made: cst.Call, there: Expression, follower: Follower) -> str | None:
    """The class of a library's trainer that a call makes, or of which the user's own class is made; None where it makes
    something else."""
    owner = follower.defined(there.at(made.func)) if isinstance(made.func, (cst.Name, cst.Attribute)) else None
    bases = [dotted(each.value) for each in owner.bases] if isinstance(owner, Defined) else []
    return next((each for each in (dotted(made.func), *bases) if each.endswith("Trainer")), None)


def _makes_an_object(call: cst.Call) -> bool:
    """Whether a call makes an object of a class, by its name: what a function takes is not known."""
    return last_name(call.func)[:1].isupper()


def _is_imported(made: Expression, library: str, name: str = "") -> bool:
    """Whether what a call makes is of a class that its file imports from a library. `name`: of that class, "" if the
    call has it."""
    assert isinstance(made.node, cst.Call)
    called = (name or dotted(made.node.func)).split(".")[0]
    return any(
        called == (alias.evaluated_alias or alias.evaluated_name)
        for node in made.tree.nodes(cst.ImportFrom)
        if node.module is not None and dotted(node.module).split(".")[0] == library
        for alias in names_of(node)
    )


def given_by_name(call: cst.Call) -> Given | None:
    """The arguments of a call of the DataLoader; None where some are unpacked from elsewhere."""
    positional = [each.value for each in call.args if each.keyword is None]
    if any(each.star for each in call.args) or len(positional) > len(POSITIONS):
        return None
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    return dict(zip(POSITIONS, positional, strict=False)) | named
