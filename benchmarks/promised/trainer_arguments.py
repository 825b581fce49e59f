"""The Trainer of transformers makes the loader, as its arguments say."""

import tempfile
from typing import Any

import torch
from rows import Net, Rows
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Named(Dataset[dict[str, torch.Tensor]]):
    def __init__(self) -> None:
        self.rows = Rows()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        rows, labels = self.rows[index]
        return {"rows": rows, "labels": labels}


class WithLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, rows: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        logits = self.net(rows)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            num_train_epochs=1000,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            logging_steps=100_000,
        )
        Trainer(WithLoss(), arguments, train_dataset=Named()).train()
