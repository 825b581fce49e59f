"""Trains a small network on a table that is put together from its sources first."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read_sources(count):
    """Stands for a table that is downloaded from several sources, one after the other."""
    parts = []
    for source in range(count):
        time.sleep(1.0)
        parts.append(torch.randn(640, 64, generator=torch.Generator().manual_seed(source)))
    return torch.cat(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--sources", type=int, default=10)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = read_sources(options.sources)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :4].argmax(1)), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
