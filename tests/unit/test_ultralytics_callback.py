"""Callbacks of Ultralytics' trainer: which settings they stand for, and where they are written."""

from __future__ import annotations

import pytest
from tests.unit.test_trainer_arguments import changed, loop

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.edits.drafts import OneFile

TRAINS = 'from ultralytics import YOLO\n\nmodel = YOLO("yolov8n.yaml")\nmodel.train(data="data.yaml", device="cpu")\n'
SET_BY = {"set_by": {"file": "/x/site-packages/ultralytics/utils/torch_utils.py", "line": 364}}


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ({"intra_op_threads": 2}, "torch.set_num_threads(2)"),
        ({"channels_last": True}, "trainer.model.to(memory_format=torch.channels_last)"),
        (
            {"autocast": "bfloat16"},
            'setattr(trainer.model, "forward", torch.autocast("cpu", dtype=torch.bfloat16)(trainer.model.forward))',
        ),
    ],
)
def test_a_callback_stands_above_the_line_that_trains(setting: Setting, code: str) -> None:
    text, note = changed(TRAINS, setting, device="cpu", facts={"intra_op_threads": SET_BY})
    above = f"import torch\n{TRAINS}".replace(
        "model.train(", f'model.add_callback("on_train_start", lambda trainer: {code})\nmodel.train('
    )
    assert (text, note) == (above, "")


def test_several_stand_there_in_order_and_torch_is_imported_once() -> None:
    setting: Setting = {"num_workers": 2, "autocast": "bfloat16", "intra_op_threads": 2, "fused_optimizer": True}
    source = TRAINS.replace("from", "import torch as t\nfrom", 1).replace('"', "'")
    text, note = changed(source, setting, device="cpu", facts={"intra_op_threads": SET_BY})
    assert note == ""
    assert text.startswith("import torch as t\nfrom ultralytics import YOLO\n\nmodel = YOLO('yolov8n.yaml')\n")
    assert [line.partition("lambda trainer: ")[2] for line in text.splitlines()[4:-1]] == [
        "setattr(trainer.args, 'workers', 2))",
        "[group.update(fused=True) for group in trainer.optimizer.param_groups])",
        "setattr(trainer.model, 'forward', t.autocast('cpu', dtype=t.bfloat16)(trainer.model.forward)))",
        "t.set_num_threads(2))",
    ]
    assert text.splitlines()[4].startswith("model.add_callback('on_pretrain_routine_start', ")
    assert text.splitlines()[-1] == source.splitlines()[-1]


def test_it_stands_in_the_function_that_trains_and_calls_what_that_calls_it() -> None:
    source = (
        "import torch\nfrom ultralytics import YOLO\nclass Job:\n    def __init__(self):\n"
        "        self.net = YOLO('yolov8n.yaml')\n    def go(self):\n        log = self.net.train(data='data.yaml')\n"
    )
    text, note = changed(source, {"channels_last": True}, device="cpu")
    assert note == ""
    assert text.splitlines()[-2] == (
        "        self.net.add_callback('on_train_start', lambda trainer: "
        "trainer.model.to(memory_format=torch.channels_last))"
    )


def test_a_model_without_a_name_is_left_to_the_user() -> None:
    source = "from ultralytics import YOLO\nYOLO('yolov8n.yaml').train(data='data.yaml')\n"
    text, note = changed(source, {"channels_last": True}, device="cpu")
    assert text == source
    assert note.startswith('Give the model a name of its own, and write `model.add_callback("on_train_start", ')


@pytest.mark.parametrize("source", [TRAINS.replace("ultralytics", "others"), "model = make()\nmodel.train(data=1)\n"])
def test_other_libraries_get_none(source: str) -> None:
    text, _ = changed(source, {"autocast": "bfloat16", "channels_last": True}, device="cpu")
    assert "add_callback" not in text


def test_on_a_gpu_the_library_has_arguments_of_its_own() -> None:
    text, _ = changed(TRAINS, {"num_workers": 2}, device="cuda:0")
    assert 'model.train(data="data.yaml", device="cpu", workers=2)' in text
    text, _ = changed(TRAINS, {"autocast": "bfloat16"}, device="cuda:0")
    assert "add_callback" not in text


def test_what_no_callback_does_is_left_to_the_user() -> None:
    found = loop(TRAINS, device="cpu")
    setting: Setting = {"num_workers": 2, "persistent_workers": True}
    (change,) = changes_for(setting, found, project=OneFile(TRAINS))
    assert "on_pretrain_routine_start" in change.diff
    assert "Ultralytics has no argument that sets persistent_workers=True" in change.note
    assert change.unfinished
    (alone,) = changes_for({"num_workers": 2}, found, project=OneFile(TRAINS))
    assert not alone.unfinished
