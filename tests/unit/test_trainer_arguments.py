"""Arguments of transformers' trainer: which calls or words are to be changed, and whose trainer is left alone."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.unit.test_ranks import found as looped

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.drafts import Drafts, OneFile
from bottleneck_doctor.edits.origin.command_line import CommandLine
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.steps import steps_of
from bottleneck_doctor.runtime.wire.messages import Found, Site

BF16: Setting = {"autocast": "bfloat16"}
KEPT: Setting = {"checkpointing": False}
COMPILED: Setting = {"compiled": True}
PLAIN = "from transformers import Trainer, TrainingArguments\n"
PARSED = (
    "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
    "parser = HfArgumentParser((TrainingArguments,))\n(args,) = parser.parse_args_into_dataclasses()\n"
    "trainer = Trainer(model, args=args)\ntrainer.train()\n"
)
HIDDEN = (
    "from trl import SFTTrainer\ndef main(script, training):\n    trainer = SFTTrainer(model='x', args=training)\n"
    "    trainer.train()\nif __name__ == '__main__':\n    parser = make_parser()\n"
    "    script, training = parser.parse_args_and_config(fail_with_unknown_args=False)\n    main(script, training)\n"
)


def loop(source: str, **changes: Any) -> Found:
    """The loop of a program whose trainer is called in the last line that says `.train(`."""
    lines = source.splitlines()
    line = max(number for number, text in enumerate(lines, start=1) if ".train(" in text)
    site = Site(OneFile.path, line)
    return replace(
        looped(), **{"forward_site": site, "backward_site": site, "loader_site": site, "device": "cuda:0", **changes}
    )


def changed(source: str, setting: Setting, words: str = "", **changes: Any) -> tuple[str, str]:
    """The program with the change made, and what is told."""
    drafts = Drafts(OneFile(source))
    command_line = CommandLine(tuple(shlex.split(words)))
    running = Running(command_line, (OneFile.path,), OneFile.path)
    outcomes = [step(drafts) for step in steps_of(setting, loop(source, **changes), running).steps]
    notes = [told.note for outcome in outcomes for told in outcome.told]
    return drafts.text(OneFile.path) or "", " ".join(filter(None, notes))


@pytest.mark.parametrize(
    ("setting", "given"),
    [(BF16, "bf16=True"), ({"autocast": "float16"}, "fp16=True"), (COMPILED, "torch_compile=True")],
)
def test_an_argument_stands_in_the_training_arguments(setting: Setting, given: str) -> None:
    source = f"{PLAIN}args = TrainingArguments('out')\ntrainer = Trainer(model, args)\ntrainer.train()\n"
    assert changed(source, setting) == (source.replace("'out'", f"'out', {given}"), "")


def test_on_a_cpu_bfloat16_needs_another_argument() -> None:
    source = f"{PLAIN}args = TrainingArguments('out', bf16=False)\nTrainer(model, args).train()\n"
    text, _ = changed(source, BF16, device="cpu")
    assert "TrainingArguments('out', bf16=True, use_cpu=True)" in text


def test_a_trainer_that_checkpoints_by_itself_is_told_not_to() -> None:
    source = (
        "from trl import SFTConfig, SFTTrainer\ndef main():\n"
        "    trainer = SFTTrainer(model='x', args=SFTConfig(output_dir='o'), train_dataset=rows)\n"
        "    trainer.train()\nmain()\n"
    )
    text, _ = changed(source, KEPT)
    assert "args=SFTConfig(output_dir='o', gradient_checkpointing=False)" in text
    # Where the user's own line switches it on, that line is changed.
    on = source.replace("output_dir='o'", "output_dir='o', gradient_checkpointing=True")
    assert changed(on, KEPT)[0].count("gradient_checkpointing=False") == 1


def test_autocast_of_the_trainer_is_switched_off() -> None:
    source = f"{PLAIN}args = TrainingArguments('out', bf16=True)\ntrainer = Trainer(model, args)\ntrainer.train()\n"
    text, _ = changed(source, {"no_autocast": True}, autocast="bfloat16")
    assert "TrainingArguments('out', bf16=False)" in text


@pytest.mark.parametrize("source", [PARSED, HIDDEN])
def test_an_option_is_given_on_the_command_line(source: str) -> None:
    text, said = changed(source, BF16, "train.py --output_dir out")
    assert (text, said) == (source, "Start it with `--bf16 True`, which gives bf16 its value.")
    text, said = changed(source, BF16, "train.py --bf16 false --use_cpu --output_dir out", device="cpu")
    assert text == source
    assert said == "Your command line gives bf16 its value: write `--bf16 true` there in place of `--bf16 false`."


def test_where_nobody_knows_where_they_are_made_it_is_to_be_done_by_hand() -> None:
    source = f"{PLAIN}trainer = Trainer(model, arguments())\ntrainer.train()\n"
    text, said = changed(source, BF16)
    assert (text, said) == (source, "Give the trainer's arguments bf16=True.")


def test_a_trainer_of_the_users_own_that_is_made_of_one_is_known() -> None:
    source = (
        f"{PLAIN}class Mine(Trainer):\n    pass\nargs = TrainingArguments('out')\n"
        "trainer = Mine(model, args)\ntrainer.train()\n"
    )
    assert "TrainingArguments('out', bf16=True)" in changed(source, BF16)[0]


@pytest.mark.parametrize(
    "source",
    [
        "from detectron2.engine import DefaultTrainer\ntrainer = DefaultTrainer(cfg)\ntrainer.train()\n",
        "import torch\nmodel = torch.nn.Linear(1, 1)\nmodel.train()\n",
    ],
)
def test_other_trainers_are_left_alone(source: str) -> None:
    text, said = changed(source, BF16)
    assert text == source
    assert "torch.autocast" in said


def test_the_library_has_these_arguments() -> None:
    library = pytest.importorskip("transformers")
    names = {each.name for each in fields(library.TrainingArguments)}
    asked: dict[str, object] = {}
    for knob in knobs.all_knobs():
        for value in (True, False, "bfloat16", "float16"):
            for device in ("cpu", "cuda:0"):
                for autocast in ("", "bfloat16", "float16"):
                    asked |= knob.of_trainer(value, replace(looped(), device=device, autocast=autocast))
    assert asked
    assert asked.keys() <= names


def test_the_library_has_what_the_finding_of_padding_names() -> None:
    library = pytest.importorskip("transformers")
    names = {each.name for each in fields(library.TrainingArguments)}
    newer = int(library.__version__.split(".")[0]) >= 5
    assert ("train_sampling_strategy" in names) == newer
    assert ("group_by_length" in names) != newer


LISTED: Setting = {"cached_samples": True}
ROWS = {"obstacle": "", "samples": 60, "bytes": 100, "seconds": 0.3}
HELD = {"owner": "", "name": "", "kind": "rows", "places": []}


def trained_on(given: str) -> str:
    return (
        f"{PLAIN}def main():\n    args = TrainingArguments('out')\n    trainer = Trainer(\n        model,\n"
        f"        args,\n        train_dataset={given},\n        eval_dataset=held_out,\n    )\n"
        "    trainer.train()\nmain()\n"
    )


@pytest.mark.parametrize(
    ("given", "above", "instead"),
    [
        ("rows", "samples = [rows[index] for index in range(len(rows))]", "samples"),
        ('data["train"]', 'samples = [data["train"][index] for index in range(len(data["train"]))]', "samples"),
        (
            "rows if args.do_train else None",
            "",
            "[rows[index] for index in range(len(rows))] if args.do_train else None",
        ),
    ],
)
def test_a_list_of_samples_is_given_to_the_trainer(given: str, above: str, instead: str) -> None:
    text, said = changed(trained_on(given), LISTED)
    assert said == ""
    assert f"        train_dataset={instead},\n        eval_dataset=held_out,\n" in text
    assert f"    {above}\n    trainer = Trainer(\n" in text if above else "samples" not in text


def test_rows_are_kept_for_a_trainer() -> None:
    facts = {"cached_inputs": {**ROWS, "held": HELD}}
    text, said = changed(trained_on("rows if args.do_train else None"), {"cached_inputs": True}, facts=facts)
    assert said == ""
    assert "        train_dataset=KeptInputs(rows) if args.do_train else None,\n" in text
    assert text.count("class KeptInputs:") == 1


def test_a_trainer_of_the_users_own_is_given_a_list() -> None:
    own = (
        trained_on("rows")
        .replace("= Trainer(", "= Mine(")
        .replace("def main", "class Mine(Trainer):\n    pass\ndef main")
    )
    assert "        train_dataset=samples,\n" in changed(own, LISTED)[0]


def test_what_a_trainer_is_given_elsewhere_is_told() -> None:
    source = trained_on("rows").replace("        train_dataset=rows,\n", "        **options,\n")
    text, said = changed(source, LISTED)
    assert text == source
    assert said.startswith("Give the loader a list of its samples")
    # Trainers of other libraries take datasets of one kind.
    chained = trained_on("rows").replace("Trainer(", "SFTTrainer(").replace("transformers import", "trl import")
    assert changed(chained.replace("    )\n    trainer.train()", "    ).train()"), LISTED)[0].count("samples") == 0
    assert changed(chained, LISTED)[0] == chained
    other = trained_on("rows").replace("from transformers import", "from mine import")
    assert changed(other, LISTED)[0] == other
