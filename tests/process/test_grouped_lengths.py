"""Rows grouped by length: windows of them compute on less padding, and the edit does the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write
from tests.process.reader import READER

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"grouped_lengths": True}
FIX = next(fix for fix in catalogue() if fix.id == "grouped-lengths")
TEXTS = (
    PRELUDE
    + """
COLUMN_SECONDS = 0.001

class Texts(Rows):
    def __getitem__(self, index):
        return torch.full((4 + index * 37 % 29,), index + 1)


def padded(texts):
    words = nn.utils.rnn.pad_sequence(texts, batch_first=True)
    return {"input_ids": words, "attention_mask": (words != 0).long()}
"""
    + READER
    + """
loader = DataLoader(Texts(400, 0.0), batch_size=8, shuffle=True, collate_fn=padded, num_workers=int(sys.argv[1]))
for epoch in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = reader(batch["input_ids"], batch["attention_mask"]).square().mean()
        loss.backward()
        optimizer.step()
        note("columns", batch["input_ids"].shape[1])
        note("rows", " ".join(str(int(row[0])) for row in batch["input_ids"]))
"""
)
"""The forward pass takes 1 ms a column. Rows have 4 to 32; the longest of eight has 29 in the mean, and of eight that
are alike 19."""


@pytest.mark.alone
@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow(together=True))])
def test_a_window_computes_on_less_padding(guest: StartGuest, workers: str) -> None:
    script = guest(TEXTS, workers)
    found = script.found()
    assert found.drawn_by == "BatchSampler of RandomSampler"
    assert found.facts["grouped_lengths"] == {"obstacle": "", "part": ""}
    assert FIX.propose(found) == Offer((ON,))
    step = []
    for setting in (dict[str, bool](), ON, dict[str, bool](), ON):
        done = script.window(setting, lead_in=2, steps=16)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert min(step[0], step[2]) > 0.027
    assert max(step[1], step[3]) < 0.024


@pytest.mark.slow(together=True)
def test_the_edited_program_takes_every_row_once_in_batches_with_less_padding(
    guest: StartGuest, tmp_path: Path
) -> None:
    found = guest(TEXTS, "0").found()
    (change,) = changes_for(ON, found)
    assert "batch_sampler=GroupedByLength(dataset, 8)" in change.diff
    ((_, after),) = edited_files(ON, found).values()
    columns = []
    for name, source in {"written": TEXTS, "edited": after}.items():
        folder = tmp_path / name
        one_epoch = source.replace("range(2)", "range(1)")
        assert run_plain([str(write(folder, one_epoch)), "0"], folder).code == 0
        numbers = [int(each) for batch in notes(folder / "rows") for each in batch.split()]
        assert sorted(numbers) == list(range(1, 401))
        columns.append(sum(notes(folder / "columns")))
    assert columns[1] < 0.8 * columns[0]


TRAINER = """
import sys

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

sizes = [4 + index * 37 % 29 for index in range(400)]
rows = [{"input_ids": [1] * size, "attention_mask": [1] * size, "labels": size % 2} for size in sizes]


def padded(samples):
    columns = {}
    for name in ("input_ids", "attention_mask"):
        texts = [torch.tensor(sample[name]) for sample in samples]
        columns[name] = nn.utils.rnn.pad_sequence(texts, batch_first=True)
    return {**columns, "labels": torch.tensor([sample["labels"] for sample in samples])}


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(1, 2)

    def forward(self, input_ids, attention_mask, labels):
        out = self.weight((input_ids * attention_mask).float().mean(1, keepdim=True))
        return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}


arguments = TrainingArguments(
    output_dir=sys.argv[1], per_device_train_batch_size=8, num_train_epochs=2, report_to=[], save_strategy="no"
)
trainer = Trainer(model=Reader(), args=arguments, train_dataset=rows, data_collator=padded)
trainer.train()
"""


@pytest.mark.alone
def test_the_trainers_own_argument_is_written(guest: StartGuest, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    script = guest(TRAINER, str(tmp_path / "out"))
    found = script.found()
    assert found.facts["grouped_lengths"]["part"] == '["input_ids"]'
    done = script.window(ON, lead_in=2, steps=8)
    assert (done.status, done.effect) == ("ok", {"grouped_lengths": True})
    ((_, after),) = edited_files(ON, found).values()
    assert "group_by_length" in after
    edited = write(tmp_path / "edited", after)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ran = [sys.executable, str(edited), str(tmp_path / "again")]
    assert subprocess.run(ran, env=environment, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0
