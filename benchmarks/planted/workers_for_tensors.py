"""Trains a small network on tensors that lie in memory, with two workers in the loader."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(64000, 20)
    data = TensorDataset(inputs, inputs[:, :3].argmax(1))
    loader = DataLoader(
        data, batch_size=16, shuffle=True, num_workers=options.num_workers, persistent_workers=options.num_workers > 0
    )
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
