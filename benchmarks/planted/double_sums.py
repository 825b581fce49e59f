"""Trains a small convolutional network in single precision, on arrays and with sums that are in double precision."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    signals = np.random.default_rng(0).standard_normal((2048, 8, 128))
    labels = torch.from_numpy(signals[:, :, :32].std((1, 2)) > signals[:, :, 32:].std((1, 2))).long()
    loader = DataLoader(TensorDataset(torch.from_numpy(signals), labels), batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(8, 128, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(128, 128, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(128, 128, 5, padding=2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(128, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        total = torch.zeros((), dtype=torch.float64)
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch.float()).double(), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
