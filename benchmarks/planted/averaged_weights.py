"""Trains a deep, narrow network and keeps three running means of its weights, a tensor at a time in Python."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)

    def forward(self, rows):
        return rows + self.second(nn.functional.gelu(self.first(self.norm(rows))))


def average(kept, model, decay):
    with torch.no_grad():
        trained = dict(model.named_parameters())
        for name, mean in kept.named_parameters():
            mean.copy_(mean * decay + trained[name] * (1.0 - decay))  # the slow line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 32), torch.randint(0, 10, (4096,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Sequential(*(Block(32) for _ in range(40)), nn.Linear(32, 10))
    means = {decay: copy.deepcopy(model) for decay in (0.99, 0.999, 0.9999)}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for rows, labels in loader:
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for decay, kept in means.items():
                average(kept, model, decay)
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
