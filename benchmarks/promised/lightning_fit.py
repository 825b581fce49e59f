"""Lightning's Trainer runs the loop."""

import lightning
import torch
from rows import Net, Rows
from torch import nn
from torch.utils.data import DataLoader


class Task(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], number: int) -> torch.Tensor:
        rows, labels = batch
        return nn.functional.cross_entropy(self.net(rows), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        max_epochs=1000, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(Task(), DataLoader(Rows(), batch_size=8, shuffle=True))
