"""A LightningModule under its Trainer, whose automatic optimization runs the whole step as a closure of the optimizer.

Validates after every epoch, keeps a checkpoint, and sleeps in known places: 5 ms a sample, 10 ms in forward and 10 ms
in the optimizer beside the closure; while a file named `sleep` lies in its folder, also 50 ms in a callback after every
batch and 0.3 s after every epoch. All samples are alike, so that the weights end where they end in whatever order
batches come.
"""

import argparse
import json
import os
import time

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batches", type=int, default=1000)
parser.add_argument("--bar", action="store_true")
parser.add_argument("--accumulate", type=int, default=1)
options = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(4), torch.ones(1)


class Model(torch.nn.Linear):
    def forward(self, rows):
        time.sleep(0.01)
        return super().forward(rows)


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(0.01)
        return super().step(closure)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Model(4, 1)
        self.losses = []
        self.validated = 0

    def training_step(self, batch, index):
        rows, wanted = batch
        loss = (self.model(rows) - wanted).square().mean()
        self.log("loss", loss, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.validated += 1
        self.log("held_out", self.model(batch[0]).mean())

    def configure_optimizers(self):
        return Optimizer(self.parameters(), lr=0.01)


class Sleeping(lightning.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if os.path.exists("sleep"):
            time.sleep(0.05)

    def on_train_epoch_end(self, trainer, module):
        if os.path.exists("sleep"):
            time.sleep(0.3)


if __name__ == "__main__":
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=options.epochs,
        accumulate_grad_batches=options.accumulate,
        enable_progress_bar=options.bar,
        logger=False,
        callbacks=[Sleeping()],
    )
    trainer.fit(
        module,
        DataLoader(Rows(4 * options.batches, 0.005), batch_size=4, shuffle=True),
        DataLoader(Rows(8, 0.0), batch_size=4),
    )
    with open("result.json", "w") as handle:
        weights = torch.cat([each.detach().flatten() for each in module.parameters()]).tolist()
        seen = {"steps": trainer.global_step, "epochs": trainer.current_epoch, "validated": module.validated}
        json.dump({**seen, "losses": module.losses, "weights": weights}, handle)
