"""Fits a surface to noisy points that it makes in each step, and works out the whole surface after every twentieth."""

import argparse

import torch
from torch import nn


def heights(places):
    return torch.sin(3 * places[:, :1]) * torch.cos(2 * places[:, 1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000000)
    parser.add_argument("--every", type=int, default=20, help="steps between two pictures")
    options = parser.parse_args()

    torch.manual_seed(0)
    sides = torch.linspace(-1, 1, 700)
    grid = torch.cartesian_prod(sides, sides)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for step in range(1, options.steps + 1):
        places = 2 * torch.rand(2000, 2) - 1
        loss = nn.functional.mse_loss(model(places), heights(places) + 0.1 * torch.randn(2000, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.every == 0:  # the slow line
            with torch.no_grad():
                picture = model(grid)
                wrong = (picture - heights(grid)).abs().mean()
            print(f"step {step} loss {loss.item():.4f} off by {wrong.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
