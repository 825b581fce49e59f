"""Trains a convolutional network on tiles of a map, each in a small file of its own."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_tiles(folder, count):
    """Write what is missing of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        tile = generator.integers(0, 256, (3, 32, 32), dtype=np.uint8)
        file = folder / f"{number:04d}.u8"
        if not file.exists():
            draft = file.with_suffix(".part")
            draft.write_bytes(tile.tobytes())
            draft.replace(file)


class Tiles(Dataset):
    def __init__(self, folder, classes):
        self.files = sorted(folder.glob("*.u8"))
        self.classes = classes

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with open(self.files[index], "rb") as file:
            tile = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        return tile.view(3, 32, 32).float() / 255, index % self.classes


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tiles-of-a-map")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_tiles(options.data, 1600)
    loader = DataLoader(Tiles(options.data, 8), batch_size=16, shuffle=True)
    model = nn.Sequential(
        block(3, 96), block(96, 192), block(192, 192), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 8)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        for tiles, labels in loader:
            loss = nn.functional.cross_entropy(model(tiles), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
