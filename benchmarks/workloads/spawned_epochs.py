"""Trains on another part of its lines in each epoch, with a loader that is made for it. Its workers are spawned, and
import everything anew each time. With `--lines 60000`, an epoch is so long that this does not matter.

python spawned_epochs.py --lines 60000
"""

import argparse
import multiprocessing
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

LINES = 60000


class Lines(Dataset):
    """A hundred numbers as text, to be parsed."""

    def __init__(self, count: int) -> None:
        draw = random.Random(0)
        self.kinds = [" ".join(f"{draw.gauss(0, 1):.6f}" for _ in range(100)) for _ in range(50)]
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        values = [float(word) for word in self.kinds[index % len(self.kinds)].split()]
        middle = sum(values) / len(values)
        return torch.tensor([value - middle for value in values]), index % 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=3000, help="in an epoch")
    options = parser.parse_args()

    multiprocessing.set_start_method("spawn")
    torch.manual_seed(0)
    lines = Lines(LINES)
    model = nn.Sequential(nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(options.epochs):
        part = Subset(lines, torch.randperm(LINES)[: options.lines].tolist())
        loader = DataLoader(part, batch_size=32, shuffle=True, num_workers=1)
        for rows, labels in loader:
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
