"""The edit that puts lines before the training loop."""

from __future__ import annotations

from bottleneck_doctor.edits.before_loop import before_loop_change

LINES = ["gc.collect()", "gc.freeze()"]


def edited(source: str, line: int) -> str | None:
    change = before_loop_change(source, line, LINES, "gc")
    return None if change is None else change.edited


def test_before_the_outermost_loop_of_a_script() -> None:
    source = "import torch\n\nmodel = make()\nfor epoch in range(3):\n    for x in loader:\n        model(x)\n"
    assert edited(source, 6) == (
        "import gc\nimport torch\n\nmodel = make()\ngc.collect()\ngc.freeze()\n"
        "for epoch in range(3):\n    for x in loader:\n        model(x)\n"
    )


def test_in_a_function_that_makes_the_optimizer() -> None:
    source = (
        '"""Trains."""\nfrom __future__ import annotations\nimport gc\n\n\ndef main():\n'
        "    optimizer = SGD(model.parameters())\n    while True:\n        model(x)\n"
    )
    assert edited(source, 9) == source.replace("    while True", "    gc.collect()\n    gc.freeze()\n    while True")


def test_an_import_stands_behind_the_docstring_and_future_imports() -> None:
    source = '"""Trains."""\nfrom __future__ import annotations\nimport torch\nfor x in y:\n    model(x)\n'
    after = edited(source, 5)
    assert after is not None
    assert after.startswith('"""Trains."""\nfrom __future__ import annotations\nimport gc\nimport torch\n')
    assert (
        edited("for x in y:\n    model(x)\n", 2) == "import gc\ngc.collect()\ngc.freeze()\nfor x in y:\n    model(x)\n"
    )


def test_not_in_what_may_be_called_for_every_epoch() -> None:
    assert edited("def train(model, loader):\n    for x in loader:\n        model(x)\n", 3) is None
    assert edited("class Trainer:\n    def step(self, x):\n        return self.model(x)\n", 3) is None
    assert edited("model(x)\n", 1) is None
    assert edited("for", 1) is None
