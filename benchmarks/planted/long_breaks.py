"""Trains a small network, and scores many candidates with it after each epoch."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def best(model, candidates, seconds):
    """The best candidate that is found in so many seconds."""
    score, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        score = max(score, model(candidates[torch.randint(len(candidates), (4096,))]).max().item())  # the slow line
    return score


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randn(64000, 256)
    loader = DataLoader(TensorDataset(rows, rows.square().mean(1)), batch_size=640, shuffle=True)
    model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for batch, targets in loader:
            loss = nn.functional.mse_loss(model(batch).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = best(model, rows, options.seconds)
        print(f"epoch {epoch} loss {loss.item():.4f} best {score:.4f}", flush=True)


if __name__ == "__main__":
    main()
