"""Trains a wide network and writes every step's loss to a table."""

import argparse
import csv
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(12800, 1024)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :8].argmax(1)), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    with open(options.output / "losses-of-steps.csv", "w", newline="") as file:
        losses = csv.writer(file)
        for epoch in range(1, options.epochs + 1):
            for batch, labels in loader:
                output = model(batch)
                loss = nn.functional.cross_entropy(output, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                right = (output.argmax(1) == labels).float().mean()
                losses.writerow([step, f"{loss.item():.4f}", f"{right.item():.3f}"])
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
