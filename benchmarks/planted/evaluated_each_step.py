"""Trains on all rows at once, as programs for graphs do, and evaluates after each step."""

import argparse

import torch
from torch import nn


def train(model, optimizer, rows, labels, part):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(rows[part]), labels[part])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, rows, labels, rest):
    model.eval()
    return (model(rows[rest]).argmax(1) == labels[rest]).float().mean().item()


def main(trained=1000):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randn(10000, 256)
    labels = rows[:, :10].argmax(1)
    part, rest = torch.arange(trained), torch.arange(trained, 10000)
    model = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(1, options.epochs + 1):
        loss = train(model, optimizer, rows, labels, part)
        accuracy = test(model, rows, labels, rest)
        if epoch % 100 == 0:
            print(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
