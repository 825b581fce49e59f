"""Trains a network that draws a picture with one thread, as a script for many jobs on one machine has it."""

import argparse

import torch
from torch import nn


class Waves(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.into, self.out = nn.Linear(2, width), nn.Linear(width, 3)
        self.depth = depth

    def forward(self, places):
        waves = self.into(places)
        for frequency in range(1, self.depth + 1):
            waves = torch.sin(frequency * waves)
        return self.out(waves)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()

    torch.set_num_threads(1)  # the slow line
    torch.manual_seed(0)
    model = Waves(1024, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, options.steps + 1):
        places = torch.rand(2048, 2)
        colours = torch.stack([places[:, 0], places[:, 1], places.prod(1)], 1)
        loss = nn.functional.mse_loss(model(places), colours)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
