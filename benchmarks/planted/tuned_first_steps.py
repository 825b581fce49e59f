"""Trains a network whose layers try in their first steps into how many parts it is best to cut their products."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TunedLinear(nn.Linear):
    """Measures one number of parts in each of its first forward passes, and keeps to the best from then on."""

    PARTS = (1, 2, 4, 8, 16, 32)

    def __init__(self, inputs, outputs, repeats):
        super().__init__(inputs, outputs)
        self.repeats = repeats
        self.seconds = {}

    def product(self, batch, parts):
        return torch.cat([nn.functional.linear(part, self.weight, self.bias) for part in batch.chunk(parts)])

    def forward(self, batch):
        if self.training and len(self.seconds) < len(self.PARTS):
            parts = self.PARTS[len(self.seconds)]
            started = time.perf_counter()
            with torch.no_grad():
                for _ in range(self.repeats):
                    self.product(batch, parts)
            self.seconds[parts] = time.perf_counter() - started
            return self.product(batch, parts)
        return self.product(batch, min(self.seconds, key=self.seconds.get))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(10240, 512)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :6].argmax(1)), batch_size=256, shuffle=True)
    model = nn.Sequential(
        TunedLinear(512, 1536, options.repeats), nn.ReLU(), TunedLinear(1536, 1536, options.repeats), nn.ReLU()
    )
    model.append(nn.Linear(1536, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
