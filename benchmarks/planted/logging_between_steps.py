"""Trains a small network in a plain loop and sends the loss of every step to a tracking server."""

import argparse
import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tracker:
    """Stands for a client that waits until the server has the message."""

    def log(self, **values):
        message = json.dumps(values)
        time.sleep(0.05)  # the slow line
        return len(message)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    tracker = Tracker()
    inputs = torch.randn(6400, 64)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :4].argmax(1)), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            tracker.log(step=step, loss=loss.item())  # the slow line
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
