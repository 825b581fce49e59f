"""Trains on outlines that are parsed from JSON lines, as annotations of pictures come: so many lists are made for a
batch that Python's garbage collector walks all that the process has in nearly every step."""

import argparse
import json
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS = 96


class Outlines(Dataset):
    """An index of pictures, and for each the line of JSON with its outlines."""

    def __init__(self, count):
        draw = random.Random(0)
        self.index = [{"file": f"{number}.jpg", "size": [640, 480], "tags": [number]} for number in range(12 * count)]
        self.lines = [
            json.dumps(
                {
                    "label": draw.randrange(2),
                    "outlines": [[[draw.random(), draw.random()] for _ in range(POINTS)] for _ in range(5)],
                }
            )
            for _ in range(count)
        ]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return self.index[12 * index], json.loads(self.lines[index])


def collate(rows):
    """Points as one tensor; the annotations go along, for the metrics."""
    points = torch.tensor([row["outlines"] for _, row in rows])
    return points.flatten(1), torch.tensor([row["label"] for _, row in rows]), rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Outlines(args.pictures), batch_size=64, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Linear(10 * POINTS, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(args.epochs):
        began = time.perf_counter()
        for points, labels, _ in loader:
            loss = nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
