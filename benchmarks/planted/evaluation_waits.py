"""Trains on rows that are in memory, and evaluates after every epoch on recordings. Their features are computed anew
each time, while the evaluation waits."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Recordings(Dataset):
    """Noise, and the loudest of 64 frequencies in it."""

    def __init__(self, count):
        self.noise = np.random.default_rng(0).standard_normal((count, 1 << 16), dtype=np.float32)

    def __len__(self):
        return len(self.noise)

    def __getitem__(self, index):
        power = np.abs(np.fft.rfft(self.noise[index]))[:-1].reshape(64, -1).mean(1)
        return torch.from_numpy(power.astype(np.float32)), int(power[:5].argmax())


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for batch, labels in loader:
            right += (model(batch).argmax(1) == labels).sum().item()
            total += len(labels)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randn(3200, 64)
    training = DataLoader(TensorDataset(rows, rows[:, :5].argmax(1)), batch_size=32, shuffle=True)
    evaluation = DataLoader(Recordings(300), batch_size=32)  # the slow line
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in training:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(model, evaluation):.3f}", flush=True)


if __name__ == "__main__":
    main()
