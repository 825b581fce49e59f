"""Console commands of libraries that train by themselves: found as they are, with workers and without."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from tests.process.driver import Guest, run_plain, write

from bottleneck_doctor.cli._entrypoint import check_command
from bottleneck_doctor.session.session import Command

pytestmark = [pytest.mark.process, pytest.mark.slow(together=True)]

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

WORDS = """
import json, os
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "[EOS]": 2, "a": 3, "b": 4}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
).save_pretrained("tiny")
GPT2LMHeadModel(
    GPT2Config(vocab_size=8, n_positions=64, n_embd=16, n_layer=1, n_head=2, eos_token_id=2, bos_token_id=2)
).save_pretrained("tiny")
os.mkdir("data")
with open("data/train.jsonl", "w") as lines:
    for _ in range(400):
        lines.write(json.dumps({"text": "a b a b a b"}) + "\\n")
"""


@pytest.mark.parametrize(
    ("library", "prepare", "command"),
    [
        (
            "trl",
            WORDS,
            "trl sft --model_name_or_path tiny --dataset_name data --output_dir out --max_steps 4000 --use_cpu true "
            "--per_device_train_batch_size 4 --report_to none --logging_strategy no --save_strategy no",
        ),
    ],
)
def test_console_command_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, prepare: str, command: str
) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    name = command.partition(" ")[0]
    if shutil.which(name) is None:
        pytest.skip(f"there is no command {name}")
    prepared = run_plain([str(write(tmp_path, prepare, "prepare.py"))], tmp_path, OFFLINE)
    assert prepared.code == 0, prepared.err
    variables, words = check_command(command)
    guest = Guest(Command(words, tmp_path, {**OFFLINE, **variables}))
    try:
        found = guest.found()
        assert (found.rung, found.has_loader, found.samples_per_step) == ("optimizer step", True, 4.0)
        for setting in ({}, {"num_workers": 1}, {}):
            done = guest.window(setting, lead_in=3, steps=8)
            assert (done.status, done.reason) == ("ok", "")
            assert done.samples == 4 * done.steps
    finally:
        guest.close()
