"""transformers' Trainer over a model of one's own, which saves a checkpoint every fifty steps."""

import sys
import time

import torch
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return {"rows": torch.ones(4), "labels": torch.ones(1)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, rows, labels):
        time.sleep(0.006)
        output = self.layer(rows)
        return {"loss": (output - labels).square().mean(), "logits": output}


def main(batches):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model()
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        max_steps=batches,
        per_device_train_batch_size=4,
        learning_rate=0.01,
        save_steps=50,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Rows(4 * batches))
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    print(trainer.state.global_step, f"{model.layer.weight.sum().item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
