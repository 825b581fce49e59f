"""Trains a small convolutional network, and averages its weights at the end of every epoch, a tensor at a time."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def average(kept, model, decay=0.9):
    with torch.no_grad():
        for mean, weight in zip(kept.parameters(), model.parameters(), strict=True):
            mean.lerp_(weight, 1.0 - decay)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    signals = torch.randn(2048, 8, 128)
    labels = (signals[:, :, :32].std((1, 2)) > signals[:, :, 32:].std((1, 2))).long()
    loader = DataLoader(TensorDataset(signals, labels), batch_size=64, shuffle=True)
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
    kept = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        average(kept, model)
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
