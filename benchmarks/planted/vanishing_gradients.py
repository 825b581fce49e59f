"""Trains a recurrent network on long sequences, through which its gradients vanish: many of them are denormal numbers,
with which many processors compute slowly."""

import argparse

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        self.layer = nn.GRU(64, 96, batch_first=True)
        self.head = nn.Linear(96, 10)

    def forward(self, words):
        states, _ = self.layer(self.embedding(words))
        return self.head(states[:, -1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randint(0, 100, (512, 400))
    labels = rows[:, -1] % 10
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(1, options.epochs + 1):
        for start in range(0, len(rows), 16):
            part = slice(start, start + 16)
            loss = nn.functional.cross_entropy(model(rows[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
