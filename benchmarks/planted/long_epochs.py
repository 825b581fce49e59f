"""Trains on a table that takes a while to fetch, for long epochs."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fetch(parts):
    """Stands for a table that comes in parts, one after the other."""
    rows = []
    for part in range(parts):
        time.sleep(1.0)
        rows.append(torch.randn(20_000, 256, generator=torch.Generator().manual_seed(part)))
    return torch.cat(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--parts", type=int, default=12)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = fetch(options.parts)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :4].argmax(1)), batch_size=128, shuffle=True)
    model = nn.Sequential(
        nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.Linear(1024, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
