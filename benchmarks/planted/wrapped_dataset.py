"""Trains a classifier of leaves; the pictures of the training half are augmented by a data set around them."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import transforms


class Leaves(Dataset):
    """Pictures as they were taken."""

    def __init__(self, count, side):
        self.pictures = np.random.default_rng(0).random((count, side, side), dtype=np.float32)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.pictures[index], index % 4


class Augmented(Dataset):
    """Another data set, with its pictures passed through a chain."""

    def __init__(self, base, augment):
        self.base, self.augment = base, augment

    def __len__(self):
        return len(self.base)

    def __getitem__(self, index):
        picture, label = self.base[index]
        return self.augment(picture), label


class Equalise:
    """Spreads the brightness of every tile of a picture over the whole range."""

    def __init__(self, tile):
        self.tile = tile

    def __call__(self, picture):
        even = np.empty_like(picture)
        for top in range(0, picture.shape[0], self.tile):
            for left in range(0, picture.shape[1], self.tile):
                part = picture[top : top + self.tile, left : left + self.tile]
                ranks = part.ravel().argsort().argsort()  # the slow line
                even[top : top + self.tile, left : left + self.tile] = ranks.reshape(part.shape) / part.size
        return even


def to_tensor(picture):
    return torch.from_numpy(picture)[None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    chain = transforms.Compose([Equalise(32), to_tensor, transforms.RandomHorizontalFlip(), transforms.RandomCrop(192)])
    leaves = Leaves(800, 224)
    training = Augmented(Subset(leaves, range(0, len(leaves), 2)), chain)
    loader = DataLoader(training, batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 4)
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
