"""The edit that keeps in memory what the transforms of a DataLoader's dataset get: source text and a line in,
`ChangeText` or nothing out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.dataset_attributes import asked_of_dataset, in_its_place
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_dataset import dataset_calls, dataset_of, in_loop, is_given_if
from bottleneck_doctor.edits.tree import SourceTree, put
from bottleneck_doctor.knobs import HeldTransforms

NAME = "KeptInputs"
_COPIES = {"tuple": ("list", "tuple(sample)"), "list": ("list", "sample"), "dict": ("dict", "sample")}
"""By the kind of sample: what makes one that can be changed, and how it is returned."""
_OWN = frozenset({"dataset", "given", "inputs", "keep", "rows", "samples", "transform"})
"""What the class itself has by name."""
_ROWS = f'''class {NAME}:
    """A dataset that keeps its rows in memory as they are read. Its transform is done anew each time."""

    def __init__(self, dataset):
        self.transform = dataset.format["format_kwargs"]["transform"]
        self.rows = list(dataset.with_format(None))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        rows = [self.rows[index] for index in indices]
        made = self.transform({{name: [row[name] for row in rows] for name in rows[0]}})
        return [{{name: values[place] for name, values in made.items()}} for place in range(len(rows))]'''


def kept_inputs_change(source: str, line: int, held: HeldTransforms | None) -> ChangeText | None:
    """Let the loader made on `line` (any line of the call) have a dataset that keeps what the transforms of its own
    get. None where the call is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else dataset_calls(tree, line)
    if tree is None or held is None or len(calls) != 1 or tree.says(NAME):
        return None
    if held.kind != "rows" and not _is_known(held):
        return None
    call = calls[0]
    given, asked = dataset_of(call), asked_of_dataset(tree, _OWN)
    if given is None or asked is None or in_loop(tree, call) or _of_the_caller(tree, call, given):
        return None
    given = is_given_if(given) or given
    wrapped = cst.Call(cst.Name(NAME), [cst.Arg(given)])
    lines = _ROWS.split("\n") if held.kind == "rows" else _definition(held)
    return in_its_place(tree, call, lines, asked, {given: put(wrapped)})


def _is_known(held: HeldTransforms) -> bool:
    """Whether it is known how to make such a sample."""
    return bool(held.places) and (held.kind in _COPIES or (not held.kind and len(held.places) == 1))


def _of_the_caller(tree: SourceTree, call: cst.Call, given: cst.BaseExpression) -> bool:
    """Whether a function is given the dataset: it may make loaders of others, too, that hold their transforms
    elsewhere."""
    function = tree.function(call)
    if function is None:
        return False
    names = {each.value for each in tree.nodes(cst.Name, within=given)} - {"self"}
    return any(each.name.value in names for each in tree.nodes(cst.Param, within=function.params))


def _definition(held: HeldTransforms) -> list[str]:
    stars, given = ("**", "values") if held.places[0].name else ("", "value")
    # What is done to what the transforms made can't be done to what they were given.
    if all(each.made == "{}" for each in held.places):
        reading = [
            f"HELD = lambda {stars}{given}: {given}",
            "self.inputs = [dataset[index] for index in range(len(dataset))]",
        ]
        keeping: list[str] = []
        getting = _of_bare(held)
    else:
        reading = _keeping(held)
        keeping = [
            f"    def keep(self, {stars}{given}):",
            f"        self.given = {given}",
            f"        return self.transform({stars}{given})",
            "",
        ]
        getting = _made(held, "samples", f"self.transform({stars}self.inputs[index])")
    text = [
        f"class {NAME}:",
        '    """A dataset that keeps in memory what its transforms get. They are done anew each time."""',
        "",
        "    def __init__(self, dataset):",
        "        self.transform = HELD",
        *(f"        {each}" for each in reading),
        "        HELD = self.transform",
        "",
        *keeping,
        "    def __len__(self):",
        "        return len(self.inputs)",
        "",
        "    def __getitem__(self, index):",
        *(f"        {each}" for each in getting),
    ]
    attribute = f"dataset{held.owner}.{held.name}"
    return [each.replace("HELD", attribute) for each in text]


def _keeping(held: HeldTransforms) -> list[str]:
    """How what the transforms get is noted while the dataset makes its samples, which are kept without it."""
    if not held.kind:
        kept = ["    dataset[index]"]
    else:
        emptied = " = ".join(f"sample{each.place}" for each in held.places)
        kept = [
            f"    sample = {_COPIES[held.kind][0]}(dataset[index])",
            f"    {emptied} = None",
            "    self.samples.append(sample)",
        ]
    return [
        "self.inputs = []",
        *(["self.samples = []"] if held.kind else []),
        "HELD = self.keep",
        "for index in range(len(dataset)):",
        *kept,
        "    self.inputs.append(self.given)",
    ]


def _of_bare(held: HeldTransforms) -> list[str]:
    """How a sample is made of one that has, in place of what the transforms made, what they were given."""
    kept = "sample" if held.kind else "self.inputs[index]"
    given = [f"{each.name}={kept}{each.place}" if each.name else f"{kept}{each.place}" for each in held.places]
    return _made(held, "inputs", f"self.transform({', '.join(given)})")


def _made(held: HeldTransforms, kept: str, call: str) -> list[str]:
    """How a sample is made of what is `kept` of it, and of what `call` returns."""
    if len(held.places) == 1:
        (only,) = held.places
        code = only.made.format(f'{call}["{only.name}"]' if only.name else call)
        if not held.kind:
            return [f"return {code}"]
        lines = [f"sample{only.place} = {code}"]
    else:
        lines = [f"made = {call}"]
        for each in held.places:
            code = each.made.format(f'made["{each.name}"]')
            lines.append(f"sample{each.place} = {code}")
    copied, returned = _COPIES[held.kind]
    return [f"sample = {copied}(self.{kept}[index])", *lines, f"return {returned}"]
