"""Trains a small convolutional network on measured signals, all in the type that NumPy gave them."""

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
    torch.set_default_dtype(torch.float64)
    signals = np.random.default_rng(0).standard_normal((2048, 8, 128))
    labels = torch.from_numpy(signals[:, :, :32].std((1, 2)) > signals[:, :, 32:].std((1, 2))).long()
    loader = DataLoader(TensorDataset(torch.from_numpy(signals), labels), batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(8, 96, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(96, 96, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(96, 96, 5, padding=2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(96, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
