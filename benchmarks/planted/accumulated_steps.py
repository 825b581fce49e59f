"""Trains a network with gradients of four batches for every step of the optimizer."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--accumulate", type=int, default=4)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(12800, 512)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :8].argmax(1)), batch_size=160, shuffle=True)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(1, options.epochs + 1):
        for number, (batch, labels) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(model(batch), labels) / options.accumulate
            loss.backward()
            if number % options.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {loss.item() * options.accumulate:.4f}", flush=True)


if __name__ == "__main__":
    main()
