"""Lightning's Trainer, with its default checkpoint and CSV logger in folders that it numbers on."""

import logging
import sys
import time
import warnings

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.ones(4)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, rows, index):
        time.sleep(0.006)
        loss = self.layer(rows).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main(batches):
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=CSVLogger("."),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(Rows(4 * batches), batch_size=4, shuffle=True))
    print(trainer.global_step, f"{module.layer.weight.sum().item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
