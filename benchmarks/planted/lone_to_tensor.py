"""Trains on squares that are cut out of large pictures, each of which is made a tensor first."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class Squares(Dataset):
    def __init__(self, kinds, count, side, transform=None):
        self.pictures = np.random.default_rng(0).integers(0, 256, (kinds, 1080, 1440, 3), dtype=np.uint8)
        self.count, self.side, self.transform = count, side, transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        picture = self.pictures[index % len(self.pictures)]
        if self.transform is not None:
            picture = self.transform(picture)
        top, left = index * 37 % (1080 - self.side), index * 53 % (1440 - self.side)
        return picture[:, top : top + self.side, left : left + self.side], index % 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    squares = Squares(24, 1600, 32, transform=transforms.ToTensor())  # the slow line
    loader = DataLoader(squares, batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for pictures, labels in loader:
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
