"""The edits that a setting asks for: one for each place, and what has no line of its own as a note."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.runtime.wire.messages import Found, Site, Taker

SCRIPT = """\
import torch
loader = DataLoader(data)
for x in loader:
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""
ALL: Setting = {"num_workers": 2, "pin_memory": True, "autocast": "bfloat16", "intra_op_threads": 1}


@pytest.fixture
def found(tmp_path: Path) -> Found:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    loader, forward, backward = (Site(file=str(script), line=line) for line in (2, 4, 5))
    return replace(FOUND, device="cpu", loader_site=loader, forward_site=forward, backward_site=backward)


def test_each_place_gets_its_edit(found: Found) -> None:
    loader, autocast = changes_for(ALL, found)
    assert (loader.line, autocast.line) == (2, 4)
    # What is so near to another edit that neither could be made after the other is one change with it.
    assert "+torch.set_num_threads(1)\n" in loader.diff
    assert "+loader = DataLoader(data, num_workers=2, pin_memory=True)" in loader.diff
    assert 'torch.autocast("cpu", dtype=torch.bfloat16)' in autocast.diff
    assert loader.note == autocast.note == ""


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ({"intra_op_threads": 1}, "torch.set_num_threads(1)"),
        ({"cudnn_benchmark": True}, "torch.backends.cudnn.benchmark = True"),
    ],
)
def test_what_is_done_before_training_goes_into_the_script_that_is_started(
    setting: Setting, line: str, found: Found, tmp_path: Path
) -> None:
    script = tmp_path / "main.py"
    script.write_text("import torch\nimport train\ntrain.run(torch.device('cpu'))\n")
    (only,) = changes_for(setting, found, [str(script)])
    assert only.file == str(script)
    assert f" import train\n+{line}\n train.run(" in only.diff
    # One that doesn't import torch makes models somewhere else.
    script.write_text("import train\ntrain.run()\n")
    (only,) = changes_for(setting, found, [str(script)])
    assert only.file.endswith("train.py")
    assert f"+{line}\n" in only.diff


def test_a_call_that_is_made_already_is_changed_where_it_is(found: Found, tmp_path: Path) -> None:
    script, train = tmp_path / "main.py", tmp_path / "train.py"
    script.write_text("import torch\nimport train\n")
    train.write_text(SCRIPT + "torch.set_num_threads(8)\n")
    (only,) = changes_for({"intra_op_threads": 1}, found, [str(script)])
    assert only.file == str(train)
    assert "-torch.set_num_threads(8)\n+torch.set_num_threads(1)\n" in only.diff


def test_one_place_gets_one(found: Found) -> None:
    (only,) = changes_for({"num_workers": 2}, found)
    assert only.note == ""
    (only,) = changes_for({"autocast": "bfloat16"}, found)
    assert only.line == 4
    assert changes_for({}, found) == []


def test_what_was_seen_nowhere_is_said_beside_the_rest(found: Found) -> None:
    (loader,) = changes_for(ALL, replace(found, forward_site=None))
    assert "And put the forward pass and the loss under `with torch.autocast(" in loader.note
    autocast, call = changes_for(ALL, replace(found, loader_site=None))
    assert call.diff.count("\n+") == 1
    assert "And pass `num_workers=2, pin_memory=True` to the DataLoader." in autocast.note
    (call,) = changes_for(ALL, replace(found, loader_site=None, forward_site=None))
    assert "+torch.set_num_threads(1)" in call.diff
    assert "And pass `num_workers=2, pin_memory=True` to the DataLoader. And put the forward pass" in call.note
    assert changes_for(ALL, replace(found, loader_site=None, forward_site=None, backward_site=None)) == []


SWITCHED: Setting = {"detect_anomaly": False, "deterministic_algorithms": False}


def test_what_is_switched_on_is_switched_off_where_it_is_written(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT + "torch.use_deterministic_algorithms(True, warn_only=True)\n")
    (only,) = changes_for({"deterministic_algorithms": False}, found)
    assert (only.file, only.line) == (str(script), 7)
    assert "+torch.use_deterministic_algorithms(False, warn_only=True)\n" in only.diff
    assert only.note == ""
    # What is written in another file of the user's is said beside it.
    (both,) = changes_for(SWITCHED, found)
    assert both.diff == only.diff
    assert both.note == "And write `torch.autograd.set_detect_anomaly(False)` before training begins."


def test_what_is_switched_on_somewhere_else_is_said_beside_the_first_line_that_is_known(found: Found) -> None:
    (only,) = changes_for(SWITCHED, found)
    assert (only.line, only.diff) == (4, "")
    assert only.note == (
        "Write `torch.autograd.set_detect_anomaly(False)` and `torch.use_deterministic_algorithms(False)` before "
        "training begins, or remove what switches it on."
    )
    assert changes_for(SWITCHED, replace(found, loader_site=None, forward_site=None, backward_site=None)) == []


def test_nothing_is_written_above_a_library_that_sets_it_again(found: Found) -> None:
    by_library = {"set_by": {"file": "/x/site-packages/trains/engine.py", "line": 40}}
    setting: Setting = {"deterministic_algorithms": False, "cudnn_benchmark": True, "detect_anomaly": False}
    facts = {"deterministic_algorithms": by_library, "cudnn_benchmark": by_library}
    (only,) = changes_for(setting, replace(found, facts=facts))
    assert only.diff == ""
    for code in ("torch.use_deterministic_algorithms(False)", "torch.backends.cudnn.benchmark = True"):
        assert f"rite `{code}` when training has begun" in only.note
    assert "`trains/engine.py` sets it, too (line 40)" in only.note
    assert "`torch.autograd.set_detect_anomaly(False)` before training begins" in only.note
    facts = {"intra_op_threads": by_library, "float32_precision": by_library}
    (only,) = changes_for({"intra_op_threads": 2, "float32_precision": "high"}, replace(found, facts=facts))
    assert only.diff == ""
    assert "Call `torch.set_num_threads(2)` when training has begun" in only.note
    assert 'Call `torch.set_float32_matmul_precision("high")` when training has begun' in only.note


def test_ultralytics_has_ways_of_its_own(found: Found) -> None:
    begins = {"set_by": {"file": "/x/site-packages/ultralytics/utils/torch_utils.py", "line": 364}}
    facts = {"deterministic_algorithms": begins, "intra_op_threads": begins}
    (only,) = changes_for({"deterministic_algorithms": False}, replace(found, facts=facts))
    assert only.note.startswith(
        "Pass `deterministic=False` to `model.train(...)`: `ultralytics/utils/torch_utils.py` sets"
    )
    (only,) = changes_for({"intra_op_threads": 2}, replace(found, facts=facts))
    callback = 'model.add_callback("on_train_start", lambda trainer: torch.set_num_threads(2))'
    assert only.note.startswith(f"Write `{callback}` before `model.train(...)`: ")


def test_a_line_that_cannot_be_read_is_named(found: Found, tmp_path: Path) -> None:
    (tmp_path / "train.py").unlink()
    (only,) = changes_for({"num_workers": 2}, found)
    assert (only.line, only.diff) == (2, "")
    assert "DataLoader is built" in only.note


CLEANED: Setting = {"cleanup_calls": False}


def test_calls_are_taken_out_where_they_stand(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import gc\n" + SCRIPT + "    gc.collect()\n")
    helper = tmp_path / "helper.py"
    lines = [["gc.collect", str(script), 8, 9], ["torch.cuda.empty_cache", str(helper), 3, 9]]
    here, there = changes_for(CLEANED, replace(found, facts={"cleanup_calls": {"lines": lines, "steps": 9}}))
    assert (here.file, here.line) == (str(script), 8)
    assert "-    gc.collect()\n" in here.diff
    # A file that can't be read any more.
    assert (there.file, there.line, there.diff) == (str(helper), 3, "")
    assert there.note == "Remove `torch.cuda.empty_cache()` in line 3."


def test_recorded_numbers_are_taken_after_the_loop_or_the_note_says_how(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    lines = replace(found, facts={"late_values": {"obstacle": "", "lines": [[str(script), 7]]}})
    script.write_text(SCRIPT + "    total += loss.item()\n")
    (only,) = changes_for({"late_values": True}, lines)
    assert (only.file, only.line, only.note) == (str(script), 7, "")
    assert "+    total += loss.detach().float()\n+total = float(total)\n" in only.diff
    script.write_text(SCRIPT + "    print(loss.item())\n")
    (only,) = changes_for({"late_values": True}, lines)
    assert (only.line, only.diff) == (7, "")
    assert only.note.startswith("Keep this as a tensor (`total += loss.detach()`)")


def test_batches_are_copied_ahead_or_the_note_says_how(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    setting: Setting = {"pin_memory": True, "device_prefetch": True}
    moved = SCRIPT.replace("    loss =", "    x = x.to(device)\n    loss =")
    script.write_text(moved)
    assert found.forward_site is not None
    here = replace(found, forward_site=replace(found.forward_site, line=found.forward_site.line + 1))
    (only,) = changes_for(setting, here)
    assert "pin_memory=True" in only.diff
    assert "copied_ahead(" in only.diff
    script.write_text(SCRIPT)
    assert any("Fetch one batch more than the loop has" in each.note for each in changes_for(setting, found))
    nowhere = changes_for(setting, replace(found, forward_site=None))
    assert any("And fetch one batch more than the loop has" in each.note for each in nowhere)


WHOLE: Setting = {"batched_fetch": True}
IMPORTED = SCRIPT.replace("import torch\n", "from torch.utils.data import DataLoader\n")
WHOLE_SCRIPT = IMPORTED.replace("(data)", "(data, 4)")


def test_whole_batches_are_one_edit_with_the_loaders_arguments(found: Found, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WHOLE_SCRIPT)
    (both,) = changes_for({**WHOLE, "num_workers": 2}, found)
    assert (both.line, both.note) == (1, "")
    assert "+from torch.utils.data import DataLoader, BatchSampler, SequentialSampler\n" in both.diff
    assert "+    sampler=BatchSampler(SequentialSampler(data), batch_size=4, drop_last=False),\n" in both.diff
    assert "+    num_workers=2,\n" in both.diff


def test_a_list_of_samples_is_one_edit_with_the_loaders_arguments(found: Found, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WHOLE_SCRIPT)
    (both,) = changes_for({"cached_samples": True, "num_workers": 0}, found)
    assert both.note == ""
    assert "+samples = [data[index] for index in range(len(data))]\n" in both.diff
    assert "(samples, 4, num_workers=0)" in both.diff


FITTED = "import torch\nfrom skorch import NeuralNet\nnet = NeuralNet(None)\nnet.fit(Rows(), None)\n"


def test_a_list_of_samples_where_a_library_makes_the_loader(found: Found, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FITTED)
    seen = replace(
        found,
        loader_site=Site(str(tmp_path / "train.py"), 4),
        forward_site=None,
        backward_site=None,
        loader_takers=[Taker("NeuralNet", {"num_workers": "iterator_train__num_workers"})],
        dataset_takers=[Taker("", {"dataset": "X"}, {"dataset": 0}, called="fit")],
    )
    (both,) = changes_for({"cached_samples": True, "num_workers": 2}, seen)
    for line in (
        "net = NeuralNet(None, iterator_train__num_workers=2)",
        "dataset = Rows()",
        "samples = [dataset[index] for index in range(len(dataset))]",
        "net.fit(torch.utils.data.Subset(samples, range(len(samples))), None)",
    ):
        assert f"+{line}\n" in both.diff
    assert both.note.startswith("A `Subset` of all samples makes a dataset of the list")
    assert not both.unfinished


def test_transformers_trainer_gets_the_list_itself(found: Found, tmp_path: Path) -> None:
    text = "from transformers import Trainer\ntrainer = Trainer(model, train_dataset=rows)\n\ntrainer.train()\n"
    (tmp_path / "train.py").write_text(text)
    site = Site(str(tmp_path / "train.py"), 4)
    takers = [Taker("Trainer", {"dataset": "train_dataset"}, {"dataset": 3})]
    seen = replace(found, loader_site=site, forward_site=None, backward_site=None, dataset_takers=takers)
    (only,) = changes_for({"cached_samples": True}, seen)
    assert "+trainer = Trainer(model, train_dataset=samples)\n" in only.diff


def test_a_list_of_samples_that_no_edit_is_certain_for_is_told(found: Found, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WHOLE_SCRIPT.replace("(data, 4)", "(*data)"))
    (only,) = changes_for({"cached_samples": True}, found)
    assert only.diff == ""
    assert only.note == (
        "Give the loader a list of its samples, made once before training: "
        "`dataset=[dataset[index] for index in range(len(dataset))]`."
    )


def test_whole_batches_that_no_edit_is_certain_for_are_told(found: Found, tmp_path: Path) -> None:
    told = "Pass `sampler=BatchSampler(...), batch_size=None` to the DataLoader, without its `shuffle` and `drop_last`."
    (tmp_path / "train.py").write_text(WHOLE_SCRIPT.replace("(data, 4)", "(data, 4, collate_fn=None)"))
    (only,) = changes_for(WHOLE, found)
    assert (only.line, only.diff, only.note) == (2, "", told)
    (both,) = changes_for({**WHOLE, "num_workers": 2}, found)
    assert "num_workers=2" in both.diff
    assert both.note == told
    (gone,) = changes_for({**WHOLE, "autocast": "bfloat16"}, replace(found, loader_site=None))
    assert gone.note == f"And p{told[1:]}"


def test_autocast_in_the_words_of_keras(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    script.write_text("import keras\n\nmodel = keras.Sequential([...])\nmodel.fit(x, y)\n")
    here = Site(file=str(script), line=4)
    (only,) = changes_for({"autocast": "bfloat16"}, replace(found, forward_site=here, backward_site=here))
    assert (only.line, only.diff, only.unfinished) == (4, "", True)
    assert 'In Keras, `keras.mixed_precision.set_global_policy("mixed_bfloat16")` before the model' in only.note


LIGHTNING = """\
import pytorch_lightning as pl
from torch.utils.data import DataLoader


class Segments(pl.LightningModule):
    def forward(self, images):
        return self.model((images - self.mean) / self.std)

    def training_step(self, batch, number):
        images, masks = batch
        return {"loss": self.loss(self.forward(images), masks)}


trainer = pl.Trainer(max_epochs=3)
trainer.fit(Segments(), DataLoader(data))
"""


@pytest.mark.parametrize(("dtype", "precision"), [("bfloat16", "bf16-mixed"), ("float16", "16-mixed")])
def test_autocast_is_given_to_lightning_s_trainer(found: Found, tmp_path: Path, dtype: str, precision: str) -> None:
    script = tmp_path / "fit.py"
    script.write_text(LIGHTNING)
    seen = replace(found, forward_site=Site(str(script), 7), backward_site=Site(str(script), 15))
    (only,) = changes_for({"autocast": dtype}, seen)
    assert f'+trainer = pl.Trainer(max_epochs=3, precision="{precision}")' in only.diff
    assert (only.note, only.unfinished) == ("", False)
    script.write_text(LIGHTNING.replace("max_epochs=3", 'max_epochs=3, precision="32-true"'))
    (only,) = changes_for({"autocast": dtype}, seen)
    assert f'+trainer = pl.Trainer(max_epochs=3, precision="{precision}")' in only.diff


LIGHTNING_CLI = LIGHTNING[: LIGHTNING.index("trainer =")] + "LightningCLI(Segments, Rows)\n"


@pytest.mark.parametrize(
    ("config", "words", "diff", "needed"),
    [
        ("max_epochs: 3", "--config fit.yaml", "", ("", "--trainer.precision bf16-mixed")),
        ("precision: 32-true", "--config fit.yaml", "+  precision: bf16-mixed", None),
        (
            "precision: 32-true",
            "--config fit.yaml --trainer.precision=32",
            "",
            ("--trainer.precision=32", "--trainer.precision=bf16-mixed"),
        ),
    ],
)
def test_autocast_is_an_option_of_lightning_s_cli(
    found: Found, tmp_path: Path, config: str, words: str, diff: str, needed: tuple[str, str] | None
) -> None:
    script = tmp_path / "fit.py"
    script.write_text(LIGHTNING_CLI)
    (tmp_path / "fit.yaml").write_text(f"trainer:\n  {config}\n")
    here = Site(str(script), 7)
    seen = replace(found, forward_site=here, backward_site=here, trainer="lightning")
    argv = ["python", str(script), "fit", *words.replace("fit.yaml", str(tmp_path / "fit.yaml")).split()]
    (only,) = changes_for({"autocast": "bfloat16"}, seen, argv)
    assert not only.unfinished
    assert diff in only.diff
    assert bool(only.diff) is bool(diff)
    assert [(each.before, each.after) for each in only.words] == ([] if needed is None else [needed])


def test_where_lightning_does_not_train_its_trainer_is_not_named(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    for text in (LIGHTNING.replace("pytorch_lightning", "own_lightning"), LIGHTNING.replace("trainer.fit", "run")):
        script.write_text(text)
        here = Site(str(script), 7)
        (only,) = changes_for({"autocast": "bfloat16"}, replace(found, forward_site=here, backward_site=here))
        assert (only.diff, only.unfinished) == ("", True)
        assert "under `with torch.autocast" in only.note


def test_a_library_that_makes_lightning_s_trainer_is_to_hand_the_precision_on(found: Found, tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    script.write_text("import scvi\nmodel = scvi.model.SCVI(cells)\nmodel.train(max_epochs=200)\n")
    here = Site(str(script), 3)
    seen = replace(found, forward_site=here, backward_site=here, trainer="lightning")
    (only,) = changes_for({"autocast": "bfloat16"}, seen)
    assert (only.diff, only.unfinished, only.line) == ("", True, 3)
    assert 'it needs `precision="bf16-mixed"`' in only.note
    assert "`trainer_kwargs`" in only.note


@pytest.mark.parametrize(
    ("text", "taker", "edited"),
    [
        (
            "import scvi\nmodel = scvi.model.SCVI(cells)\nmodel.train(max_epochs=200)\n",
            Taker("", {"precision": "precision"}),
            '+model.train(max_epochs=200, precision="bf16-mixed")',
        ),
        (
            "from darts.models import NBEATSModel\nmodel = NBEATSModel(24, 12)\nmodel.fit(series)\n",
            Taker("NBEATSModel", {"precision": "precision"}, within="pl_trainer_kwargs"),
            '+model = NBEATSModel(24, 12, pl_trainer_kwargs={"precision": "bf16-mixed"})',
        ),
        (
            'model = NBEATSModel(24, pl_trainer_kwargs={"accelerator": "cpu"})\n\nmodel.fit(series)\n',
            Taker("NBEATSModel", {"precision": "precision"}, within="pl_trainer_kwargs"),
            '+model = NBEATSModel(24, pl_trainer_kwargs={"accelerator": "cpu", "precision": "bf16-mixed"})',
        ),
        (
            "forecast = NeuralForecast(models=[NHITS(h=12)], freq=1)\n\nforecast.fit(df=df)\n",
            Taker("NHITS", {"precision": "precision"}),
            '+forecast = NeuralForecast(models=[NHITS(h=12, precision="bf16-mixed")], freq=1)',
        ),
    ],
    ids=["scvi-tools", "darts", "darts, with more", "neuralforecast"],
)
def test_what_takes_the_trainer_s_arguments_gets_the_precision(
    found: Found, tmp_path: Path, text: str, taker: Taker, edited: str
) -> None:
    script = tmp_path / "fit.py"
    script.write_text(text)
    here = Site(str(script), 3)
    seen = replace(found, forward_site=here, backward_site=here, trainer="lightning", trainer_takers=[taker])
    (only,) = changes_for({"autocast": "bfloat16"}, seen)
    assert edited in only.diff
    assert (only.note, only.unfinished) == ("", False)


HANDED = """\
from torch.utils.data import DataLoader

def main(args):
    dataset = Pictures(args.folder)
    train_loader = DataLoader(
        dataset, batch_size=args.batch, shuffle=True, num_workers=args.workers
    )
    test_loader = DataLoader(Pictures(args.test), batch_size=8)
    model, optimizer, train_loader, test_loader = accelerator.prepare(
        model, optimizer, train_loader, test_loader
    )
"""
ROWS = {
    "obstacle": "",
    "samples": 60,
    "bytes": 100,
    "seconds": 0.3,
    "held": {"owner": "", "name": "", "kind": "rows", "places": []},
}


@pytest.mark.parametrize(
    ("setting", "written"),
    [
        ({"cached_samples": True}, "+        samples, batch_size=args.batch, shuffle=True, num_workers=args.workers\n"),
        (
            {"cached_inputs": True},
            "+        KeptInputs(dataset), batch_size=args.batch, shuffle=True, num_workers=args.workers\n",
        ),
        ({"batched_fetch": True}, "+        dataset,"),
    ],
)
def test_a_loader_that_is_handed_on_is_changed_where_it_is_made(
    found: Found, tmp_path: Path, setting: Setting, written: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(HANDED)
    line = 1 + HANDED[: HANDED.index("accelerator.prepare")].count("\n")
    here = Site(str(script), line)
    (made,) = changes_for(setting, replace(found, loader_site=here, forward_site=None, facts={"cached_inputs": ROWS}))
    assert made.note == ""
    assert written in made.diff
    assert "test_loader" not in "".join(each for each in made.diff.splitlines() if each.startswith(("+", "-")))
