"""Trains a wide network and keeps the losses as numbers, and the outputs of the last steps."""

import argparse
from collections import deque
from statistics import fmean

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(12800, 512)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :32].argmax(1)), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1536), nn.ReLU(), nn.Linear(1536, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    losses, outputs = [], deque(maxlen=40)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            output = model(batch)
            loss = nn.functional.cross_entropy(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            outputs.append(output.detach())
        spread = torch.stack(tuple(outputs)).std().item()
        print(f"epoch {epoch} loss {fmean(losses[-50:]):.4f} spread {spread:.3f}", flush=True)


if __name__ == "__main__":
    main()
