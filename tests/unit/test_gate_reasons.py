"""Why a step grew: planted changes as a profile and a diff would show them, and the place that is named first."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from bottleneck_doctor.documents.check import Culprit
from bottleneck_doctor.documents.report import CallNode
from bottleneck_doctor.gate import verdict
from bottleneck_doctor.gate.cause import growth, hunks
from bottleneck_doctor.gate.cause.culprits import Table
from bottleneck_doctor.gate.cause.mentions import Mention, mentions, qualified
from bottleneck_doctor.gate.cause.reasons import Seen, reasons

LIB = "/venv/lib/python3.11/site-packages/"
GRAIN = 1e-5

DATA = """\
import time
from PIL import Image


class Digits:
    def __init__(self, count, transform=None):
        self.count = count
        self.transform = transform

    def __getitem__(self, index):
        image = Image.open(self.files[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, 0
"""
TRAIN = """\
import torch
from torchvision import transforms
from data import Digits

SIZE = 32


class Net(torch.nn.Module):
    def __init__(self):
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3),
            torch.nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


def train(model, loader, optimizer):
    for data, target in loader:
        output = model(data)
        loss = output.sum()
        loss.backward()
        optimizer.step()


def main():
    transform = transforms.Compose([
        transforms.RandomResizedCrop(SIZE),
        transforms.ToTensor(),
    ])
    dataset = Digits(20000, transform=transform)
    loader = torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=2)
    train(Net(), loader, torch.optim.SGD(Net().parameters()))


main()
"""

Frame = tuple[str, str, str]
"""Function, file, and the text of its line for the user's own."""
LOOP: list[Frame] = [
    ("<module>", "train.py", "main()"),
    ("main", "train.py", "train(Net(), "),
    ("train", "train.py", "for data, target in loader:"),
]
NEXT: Frame = ("_BaseDataLoaderIter.__next__", LIB + "torch/utils/data/dataloader.py", "")
SINGLE: Frame = ("_SingleProcessDataLoaderIter._next_data", LIB + "torch/utils/data/dataloader.py", "")
FETCH: Frame = ("_MapDatasetFetcher.fetch", LIB + "torch/utils/data/_utils/fetch.py", "")
GET: Frame = ("Digits.__getitem__", "data.py", "image = self.transform(image)")
MNIST: Frame = ("MNIST.__getitem__", LIB + "torchvision/datasets/mnist.py", "")
OPEN: Frame = ("Digits.__getitem__", "data.py", "image = Image.open(")
COMPOSE: Frame = ("Compose.__call__", LIB + "torchvision/transforms/transforms.py", "")
CALL: Frame = ("Module._call_impl", LIB + "torch/nn/modules/module.py", "")
CROP: Frame = ("RandomResizedCrop.forward", LIB + "torchvision/transforms/transforms.py", "")
TENSOR: Frame = ("ToTensor.__call__", LIB + "torchvision/transforms/transforms.py", "")
AFFINE: Frame = ("RandomAffine.forward", LIB + "torchvision/transforms/transforms.py", "")
WARP: Frame = ("affine", LIB + "torchvision/transforms/functional.py", "")


def line_of(frame: Frame, step: str) -> Frame:
    """The same function at another line."""
    return frame[0], frame[1], step


MODEL = [*LOOP[:2], line_of(LOOP[2], "output = model(data)"), CALL, ("Net.forward", "train.py", "return self.layers")]
CONV: Frame = ("Conv2d.forward", LIB + "torch/nn/modules/conv.py", "")
METRIC = "class Confusion:\n    def on_step(self):\n        self.table += 1\n"
STEP = [*LOOP[:2], line_of(LOOP[2], "optimizer.step()")]
BACKWARD = [*LOOP[:2], line_of(LOOP[2], "loss.backward()"), ("Tensor.backward", LIB + "torch/_tensor.py", "")]
FEED = [*LOOP, NEXT, SINGLE, FETCH]


@dataclass
class Case:
    """Both revisions' files, and what a profile saw of stacks in milliseconds a step: base, head."""

    head: Mapping[str, str] = field(default_factory=dict)
    stacks: Sequence[tuple[list[Frame], float, float]] = ()
    workers: Sequence[tuple[list[Frame], float, float]] = ()
    base: Mapping[str, str] = field(default_factory=lambda: {"data.py": DATA, "train.py": TRAIN})
    library: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        return {**self.base, **self.head}

    def differences(self) -> hunks.Differences:
        text = ""
        for path, after in self.head.items():
            before = self.base.get(path, "").splitlines(keepends=True)
            text += "".join(difflib.unified_diff(before, after.splitlines(keepends=True), path, path, n=0))
        return hunks.read(text)

    def line(self, frame: Frame, *, on_head: bool) -> int:
        text = ({**self.library, **(self.files() if on_head else self.base)}).get(frame[1], "").splitlines()
        found = [number for number, line in enumerate(text, 1) if frame[2] and frame[2] in line]
        return found[0] if found else 1

    def side(self, *, on_head: bool) -> tuple[Table, dict[str, CallNode]]:
        seconds: defaultdict[tuple[str, str, int], float] = defaultdict(float)
        trees = {}
        for role, stacks in (("main", self.stacks), ("workers", self.workers)):
            root = CallNode(name=role, path="", line=0, count=0)
            for stack, *both in stacks:
                count = round(both[on_head] * 1e-3 / GRAIN)
                if not count:
                    continue
                own = [frame for frame in stack if not frame[1].startswith("/")]
                if own:
                    seconds[own[-1][1], own[-1][0], self.line(own[-1], on_head=on_head)] += count * GRAIN
                root = poured(root, [(frame, self.line(frame, on_head=on_head)) for frame in stack], count)
            trees[role] = root
        step = trees["main"].count * GRAIN
        return Table(dict(seconds), GRAIN, step), trees

    def seen(self, grew: float | None = None) -> Seen:
        (base, before), (head, after) = (self.side(on_head=on_head) for on_head in (False, True))
        trees = [
            growth.merged(role, growth.Grown(before[role], GRAIN, str), growth.Grown(after[role], GRAIN, str))
            for role in ("main", "workers")
            if before[role].count or after[role].count
        ]
        read = {**self.files(), **self.library}
        differences = self.differences()
        grew = head.step - base.step if grew is None else grew
        return Seen(base, head, grew, differences, trees, lambda path: read.get(path, ""))

    def found(self) -> list[Culprit]:
        return reasons(self.seen(), [PHASE])


PHASE = Culprit(kind="phase", name="data_wait", base=0.01, head=0.02, sentence="Waiting for data takes longer.")


def poured(node: CallNode, stack: list[tuple[Frame, int]], count: int) -> CallNode:
    children = list(node.children)
    if stack:
        (name, path, _), line = stack[0]
        same = [each for each in children if (each.name, each.path) == (name, path)]
        child = same[0] if same else CallNode(name=name, path=path, line=line, count=0, own=not path.startswith("/"))
        children = [each for each in children if each is not child] + [poured(child, stack[1:], count)]
    return replace(node, count=node.count + count, children=children)


def changed(text: str, before: str, after: str) -> str:
    assert before in text
    return text.replace(before, after)


def place(case: Case, culprit: Culprit) -> str:
    """`file: text` of the line that is named."""
    assert culprit.site is not None
    return f"{culprit.site.file}: {case.files()[culprit.site.file].splitlines()[culprit.site.line - 1].strip()}"


def in_train(before: str, after: str) -> dict[str, str]:
    return {"train.py": changed(TRAIN, before, after)}


def in_data(before: str, after: str) -> dict[str, str]:
    return {"data.py": changed(DATA, before, after)}


USUAL = [(MODEL, 4.0, 4.0), (BACKWARD, 6.0, 6.0), ([*FEED, GET, COMPOSE, TENSOR], 2.0, 2.0)]

WITH_AFFINE = changed(
    TRAIN, "        transforms.ToTensor(),\n", "        transforms.RandomAffine(10),\n        transforms.ToTensor(),\n"
)
PLANTED = {
    "a transform that was added to a chain": (
        Case({"train.py": WITH_AFFINE}, [*USUAL, ([*FEED, GET, COMPOSE, CALL, AFFINE, WARP], 0.0, 2.8)]),
        "RandomAffine.forward",
        "train.py: transforms.RandomAffine(10),",
    ),
    "a transform of a library's own dataset, so that the innermost line is that of the loop": (
        Case(
            {"train.py": WITH_AFFINE},
            [
                *USUAL,
                ([*FEED, MNIST, COMPOSE, CALL, AFFINE], 0.0, 2.8),
            ],
        ),
        "RandomAffine.forward",
        "train.py: transforms.RandomAffine(10),",
    ),
    "the same, where workers load": (
        Case(
            {"train.py": WITH_AFFINE},
            [*USUAL, ([*LOOP, NEXT], 0.5, 2.0)],
            workers=[([FETCH, GET, COMPOSE, TENSOR], 4.0, 4.0), ([FETCH, GET, COMPOSE, CALL, AFFINE], 0.0, 6.0)],
        ),
        "RandomAffine.forward",
        "train.py: transforms.RandomAffine(10),",
    ),
    "the same, while the machine makes all else slower": (
        Case(
            {"train.py": WITH_AFFINE},
            [
                *((stack, base, 1.5 * head) for stack, base, head in USUAL),
                ([*FEED, MNIST, COMPOSE, TENSOR], 3.0, 5.0),
                ([*FEED, MNIST, COMPOSE, CALL, AFFINE], 0.0, 2.8),
            ],
        ),
        "RandomAffine.forward",
        "train.py: transforms.RandomAffine(10),",
    ),
    "a lone transform instead of none": (
        Case(
            in_train("Digits(20000, transform=transform)", "Digits(20000, transform=transforms.RandomAffine(9))"),
            [*USUAL, ([*FEED, GET, CALL, AFFINE], 0.0, 2.8)],
        ),
        "RandomAffine.forward",
        "train.py: dataset = Digits(20000, transform=transforms.RandomAffine(9))",
    ),
    "a sleep in __getitem__": (
        Case(
            in_data("        if self.transform", "        time.sleep(0.001)\n        if self.transform"),
            [*USUAL, ([*FEED, line_of(GET, "time.sleep(0.001)")], 0.0, 5.0)],
        ),
        "Digits.__getitem__",
        "data.py: time.sleep(0.001)",
    ),
    "a changed argument": (
        Case(
            in_train("RandomResizedCrop(SIZE)", "RandomResizedCrop(512)"),
            [*USUAL, ([*FEED, GET, COMPOSE, CALL, CROP], 1.0, 9.0)],
        ),
        "RandomResizedCrop.forward",
        "train.py: transforms.RandomResizedCrop(512),",
    ),
    "an argument on a line of its own": (
        Case(
            in_train("RandomResizedCrop(SIZE)", "RandomResizedCrop(\n            512,\n        )"),
            [*USUAL, ([*FEED, GET, COMPOSE, CALL, CROP], 1.0, 9.0)],
        ),
        "RandomResizedCrop.forward",
        "train.py: transforms.RandomResizedCrop(",
    ),
    "a constant that is an argument elsewhere": (
        Case(
            in_train("SIZE = 32", "SIZE = 512"),
            [*USUAL, ([*FEED, GET, COMPOSE, CALL, CROP], 1.0, 9.0)],
        ),
        "RandomResizedCrop.forward",
        "train.py: SIZE = 512",
    ),
    "a layer that was added, whose backward grows more": (
        Case(
            in_train("torch.nn.ReLU(),\n", "torch.nn.ReLU(),\n            torch.nn.Conv2d(8, 64, 3),\n"),
            [*USUAL, ([*MODEL, CALL, CONV], 2.0, 5.0), (BACKWARD, 4.0, 10.0)],
        ),
        "Conv2d.forward",
        "train.py: torch.nn.Conv2d(8, 64, 3),",
    ),
    "logging in the loop": (
        Case(
            in_train("loss.backward()\n", "loss.backward()\n        print(loss.item())\n"),
            [*USUAL, ([*LOOP[:2], line_of(LOOP[2], "print(loss.item())")], 0.0, 5.0)],
        ),
        "train",
        "train.py: print(loss.item())",
    ),
    "workers that were taken away": (
        Case(
            in_train("num_workers=2", "num_workers=0"),
            [*USUAL[:2], ([*LOOP, NEXT], 0.2, 0.0), ([*FEED, GET, COMPOSE, TENSOR], 0.0, 9.0)],
            workers=[([FETCH, GET, COMPOSE, TENSOR], 9.0, 0.0)],
        ),
        "_BaseDataLoaderIter.__next__",
        "train.py: loader = torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=0)",
    ),
    "a metric that a changed line puts into the callbacks": (
        Case(
            in_train("def main():\n", "CALLBACKS = [Confusion(10)]\n\n\ndef main():\n"),
            [*USUAL, ([*STEP, ("Confusion.on_step", "metric.py", "self.table +=")], 0.0, 5.0)],
            base={"data.py": DATA, "train.py": TRAIN, "metric.py": METRIC},
        ),
        "Confusion.on_step",
        "train.py: CALLBACKS = [Confusion(10)]",
    ),
    "a metric in a file that is new": (
        Case(
            {
                "train.py": changed(TRAIN, "step()\n", "step()\n        on_step(output)\n"),
                "metric.py": "def on_step(output):\n    table = output.sort()\n",
            },
            [*USUAL, ([*STEP, ("on_step", "metric.py", "table = output")], 0.0, 5.0)],
        ),
        "on_step",
        "metric.py: table = output.sort()",
    ),
    "more rounds of a loop inside a function": (
        Case(
            in_data("if self.transform is not None:", "for _ in range(9):"),
            [*USUAL, ([*FEED, GET, COMPOSE, CROP], 1.0, 9.0)],
        ),
        "Digits.__getitem__",
        "data.py: for _ in range(9):",
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_grew_and_was_changed_comes_first(planted: str) -> None:
    case, name, where = PLANTED[planted]
    found = case.found()
    assert (found[0].name, place(case, found[0]), found[0].changed_here) == (name, where, True), found
    assert "was changed" in found[0].sentence
    general = [each for each in found if each.kind != "phase" and not each.changed_here]
    assert all("for data, target" not in place(case, each) for each in general if each.site is not None)
    assert [each.name for each in found if each.kind == "phase"] == ["data_wait"]
    ends = [each.changed_here for each in found]
    assert ends == sorted(ends, reverse=True)


def test_the_words_of_a_check() -> None:
    case, _, _ = PLANTED["a transform that was added to a chain"]
    (said,) = verdict.what_grew(case.found())
    assert said == (
        "What grew most: `RandomAffine.forward` takes 2.8 ms a step, nothing before; line 30 of `train.py` "
        "names it and was changed."
    )
    layer, _, _ = PLANTED["a layer that was added, whose backward grows more"]
    (said,) = verdict.what_grew(layer.found())
    assert said.startswith(
        "Of the code that the changes touch, this grew most: `Conv2d.forward` takes 5.0 ms a step, 2.0 ms before;"
    )
    constant, _, _ = PLANTED["a constant that is an argument elsewhere"]
    assert "line 5 of `train.py`, which sets `SIZE` for it, was changed." in constant.found()[0].sentence


def test_where_nothing_was_changed_that_grew_it_says_so() -> None:
    """The files of the data grew; a comment was changed elsewhere."""
    case = Case(
        in_train("SIZE = 32", "# Pixels.\nSIZE = 32"),
        [*USUAL, ([*FEED, OPEN, ("open", LIB + "PIL/Image.py", "")], 1.0, 9.0)],
    )
    phase, function, line = case.found()
    assert phase is PHASE
    assert (function.name, function.changed_here) == ("Digits.__getitem__", False)
    assert place(case, function) == "data.py: image = Image.open(self.files[index])"
    assert function.sentence.endswith("; no changed line names it.")
    assert line.kind == "line"


def test_a_library_s_call_that_no_changed_line_names() -> None:
    """What transforms there are stands in a file of settings, and the dataset is a library's."""
    case = Case(
        {"config.yaml": "transforms: [affine]\n"},
        [*USUAL, ([*FEED, MNIST, COMPOSE, TENSOR], 1.0, 1.0), ([*FEED, MNIST, COMPOSE, CALL, AFFINE, WARP], 0.0, 2.8)],
    )
    assert [each.name for each in case.found()] == ["data_wait", "RandomAffine.forward"]
    found = case.found()[1]
    assert (found.site, found.changed_here) == (None, False)
    (said,) = verdict.what_grew(case.found())
    assert said == (
        "What grew most: `RandomAffine.forward` takes 2.8 ms a step, nothing before; no changed line names it."
    )
    # A library that calls all of the training itself says as little as the line of the loop.
    fit = [LOOP[0], ("main", "train.py", "train(Net(), "), ("Trainer.fit", LIB + "lightning/trainer.py", "")]
    usual = [([*fit, NEXT, SINGLE, FETCH], 2.0, 2.0), ([*fit, CALL, CONV], 6.0, 6.0)]
    case = replace(case, stacks=[*usual, ([*fit, ("Logger.log", LIB + "lightning/log.py", "")], 1.0, 9.0)])
    assert [each.name for each in case.found()] == ["data_wait", "Logger.log"]


def test_nothing_is_claimed_of_changes_that_are_not_known() -> None:
    case = Case({}, [*USUAL, ([*FEED, GET, COMPOSE, CALL, AFFINE], 0.0, 2.8)])
    unknown = replace(case.seen(), differences=hunks.Differences(known=False))
    assert all("changed" not in each.sentence for each in reasons(unknown))
    assert reasons(unknown)[0].name == "RandomAffine.forward"
    broken = replace(case, head={"train.py": "def main(:\n"})
    assert all("no changed line" not in each.sentence for each in broken.found())


def test_a_call_around_the_loop_is_not_named_though_its_line_was_changed() -> None:
    after = changed(TRAIN, "    train(Net(), loader", "    train(Net().eval(), loader")
    stacks = [(replaced(stack), base, head) for stack, base, head in USUAL]
    stacks.append((replaced([*FEED, OPEN]), 1.0, 9.0))
    case = Case({"train.py": after}, stacks)
    found = [each for each in case.found() if each.kind != "phase"]
    assert found[0].name == "Digits.__getitem__"
    assert not any(each.changed_here for each in found)


def replaced(stack: list[Frame]) -> list[Frame]:
    return [(name, path, "train(Net()" if name == "main" else text) for name, path, text in stack]


def test_a_changed_loader_is_not_named_for_what_its_dataset_does() -> None:
    case = Case(
        in_train("batch_size=64, ", "batch_size=64, drop_last=True, "),
        [*USUAL, ([*FEED, OPEN], 1.0, 9.0)],
    )
    assert [each.name for each in case.found()][:2] == ["data_wait", "Digits.__getitem__"]


def test_a_layer_s_class_is_known_by_what_it_is_made_from() -> None:
    """`BatchNorm2d` has its `forward` from `_BatchNorm`."""
    norm = LIB + "torch/nn/modules/batchnorm.py"
    case = Case(
        in_train("torch.nn.ReLU()", "torch.nn.BatchNorm2d(8)"),
        [*USUAL, ([*MODEL, CALL, ("_BatchNorm.forward", norm, "")], 0.0, 5.0)],
        library={norm: "class _BatchNorm(_NormBase):\n    pass\n\n\nclass BatchNorm2d(_BatchNorm):\n    pass\n"},
    )
    found = case.found()[0]
    assert (found.name, place(case, found)) == ("_BatchNorm.forward", "train.py: torch.nn.BatchNorm2d(8),")


def test_functions_of_python_3_10_get_their_class_from_the_file() -> None:
    """Their frames have the bare name, `forward`."""
    path = LIB + "torchvision/transforms/transforms.py"
    source = "class RandomAffine:\n    def forward(self, image): return image\n\n\ndef forward(): pass\n"
    assert [qualified(source, line, "forward") for line in (2, 5)] == ["RandomAffine.forward", "forward"]
    case = Case(
        {"train.py": WITH_AFFINE},
        [*USUAL, ([*FEED, ("__getitem__", *GET[1:]), ("forward", path, "def forward(self")], 0.0, 2.8)],
        library={path: source},
    )
    found = case.found()[0]
    assert (found.name, place(case, found)) == ("RandomAffine.forward", "train.py: transforms.RandomAffine(10),")


def test_luck_is_no_reason_though_its_line_was_changed() -> None:
    case = Case(
        {"train.py": WITH_AFFINE}, [*USUAL, ([*FEED, GET, COMPOSE, CALL, AFFINE], 0.0, 0.2), ([*FEED, OPEN], 1.0, 9.0)]
    )
    found = [each for each in case.found() if each.kind != "phase"]
    assert found[0].name == "Digits.__getitem__"
    assert not any(each.name == "RandomAffine.forward" for each in found)


def test_names_in_comments_and_strings_are_no_names() -> None:
    after = changed(TRAIN, "SIZE = 32", "SIZE = 32  # RandomAffine\nNOTE = 'RandomAffine'")
    case = Case({"train.py": after})
    names = {each.name for each in mentions(lambda path: case.files()[path], case.differences())}
    assert "RandomAffine" not in names
    option = Case(in_train("SIZE = 32", "KEYWORDS = {'num_workers': 0}\nSIZE = 32"))
    assert Mention("DataLoader", "train.py", 5) in mentions(lambda path: option.files()[path], option.differences())


def test_a_decorator_that_was_taken_away() -> None:
    before = "import functools\n\n\n@functools.cache\ndef decode(path):\n    return path.read_bytes()\n"
    case = Case({"image.py": before.replace("@functools.cache\n", "")}, base={"image.py": before})
    (found,) = mentions(lambda path: case.files()[path], case.differences())
    assert (found.name, found.line, found.defined) == ("decode", 4, True)


def test_a_function_comes_before_its_only_changed_line_also_where_samples_say_that_the_line_grew_more() -> None:
    slow = line_of(GET, "time.sleep(0.001)")
    head = in_data("        if self.transform", "        time.sleep(0.001)\n        if self.transform")
    case = Case(head, [*USUAL, ([*FEED, OPEN], 2.0, 1.6), ([*FEED, slow], 0.0, 5.0)])
    first, second = case.found()[:2]
    assert (first.kind, first.name) == ("function", "Digits.__getitem__")
    assert second.kind == "line"
    assert second.head - second.base > first.head - first.base, "what was planted"
    assert place(case, first) == place(case, second) == "data.py: time.sleep(0.001)"
