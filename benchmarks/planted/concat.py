"""Trains on two collections of curves together: one is measured, the other is worked out when a curve is asked for."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

POINTS = 128


class Measured(Dataset):
    def __init__(self, count):
        self.curves = torch.randn(count, POINTS, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, index):
        return self.curves[index], 0


class Simulated(Dataset):
    """The way of a pendulum that is pushed at random."""

    def __init__(self, count, steps):
        self.count, self.steps = count, steps

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = np.random.default_rng(index)
        pushes = generator.standard_normal(self.steps).tolist()
        angle, speed, way = 0.5, 0.0, []
        for push in pushes:
            speed += 0.01 * (push - angle - 0.1 * speed)  # the slow line
            angle += 0.01 * speed  # the slow line
            way.append(angle)  # the slow line
        return torch.tensor(way[:: self.steps // POINTS][:POINTS]), 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    curves = ConcatDataset([Measured(800), Simulated(800, 40_000)])
    loader = DataLoader(curves, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(POINTS, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
