"""Trains a small network on wide rows, of which it drops features: that takes most of each step on a CPU."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randn(8192, 2048)
    labels = rows[:, :10].argmax(1)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2048, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for start in range(0, len(rows), 1024):
            part = slice(start, start + 1024)
            loss = nn.functional.cross_entropy(model(rows[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
