"""Trains a model of expressions. Every step parses a batch into trees whose nodes know their parents."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse(width):
    """A flat tree of `width` leaves: nodes are [parent, children], so a tree is full of cycles."""
    root = [None, None]
    root[1] = [[root, None] for _ in range(width)]
    return root


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--width", type=int, default=100000)
    options = parser.parse_args()

    torch.manual_seed(0)
    known = [[("token", number), {number: str(number)}] for number in range(200000)]
    inputs = torch.randn(1600, 32)
    loader = DataLoader(TensorDataset(inputs, inputs.sum(1)), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        leaves = 0
        for batch, targets in loader:
            tree = parse(options.width)
            leaves += len(tree[1])
            loss = nn.functional.mse_loss(model(batch).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} leaves {leaves} of {len(known)} words", flush=True)


if __name__ == "__main__":
    main()
