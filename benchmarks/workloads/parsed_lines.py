"""Trains on lines of JSON that an iterable dataset parses as they come; each worker takes every so many of them."""

import argparse
import json
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WIDTH = 2000


class Lines(IterableDataset):
    def __init__(self, count):
        draw = random.Random(0)
        rows = [[draw.random() for _ in range(WIDTH)] for _ in range(50)]
        self.lines = [json.dumps({"values": rows[number % 50], "label": number % 2}) for number in range(50)]
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, every = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.count, every):
            row = json.loads(self.lines[number % len(self.lines)])
            values = torch.tensor(sorted(row["values"]))
            yield values + 0.01 * torch.randn(WIDTH), row["label"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Lines(20000), batch_size=32, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for values, labels in loader:
            loss = nn.functional.cross_entropy(model(values), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
