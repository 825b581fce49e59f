"""Trains with a small trainer that calls callbacks, one of which keeps watch over the weights."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_step_end(self, trainer, loss):
        pass

    def on_epoch_end(self, trainer, epoch):
        pass


class MeanLoss(Callback):
    def __init__(self):
        self.total, self.count = 0.0, 0

    def on_step_end(self, trainer, loss):
        self.total += loss.item()
        self.count += 1

    def on_epoch_end(self, trainer, epoch):
        print(f"epoch {epoch} loss {self.total / self.count:.4f}", flush=True)
        self.total, self.count = 0.0, 0


class WeightSpectrum(Callback):
    """Remembers the largest singular value of every layer."""

    def __init__(self):
        self.largest = []

    def on_step_end(self, trainer, loss):
        for parameter in trainer.model.parameters():
            if parameter.ndim == 2:
                values = torch.linalg.svdvals(parameter.detach())  # the slow line
                self.largest = [*self.largest[-100:], float(values[0])]


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks

    def fit(self, loader, epochs):
        for epoch in range(1, epochs + 1):
            for inputs, targets in loader:
                loss = nn.functional.cross_entropy(self.model(inputs), targets)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                for callback in self.callbacks:
                    callback.on_step_end(self, loss)  # the slow line
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(6400, 128)
    data = TensorDataset(inputs, inputs[:, :10].argmax(1))
    model = nn.Sequential(nn.Linear(128, 560), nn.ReLU(), nn.Linear(560, 560), nn.ReLU(), nn.Linear(560, 10))
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.05), [MeanLoss(), WeightSpectrum()])
    trainer.fit(DataLoader(data, batch_size=32, shuffle=True), options.epochs)


if __name__ == "__main__":
    main()
