"""Trains a classifier on small pictures in memory, each passed through a chain of transforms."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class ExposureOfCamera:
    """Divides a picture by the exposure of the camera it was taken with, which a service knows."""

    def __call__(self, picture):
        time.sleep(0.004)  # the slow line
        return picture / 1.25


class Noise:
    def __init__(self, strength):
        self.strength = strength

    def __call__(self, picture):
        return picture + self.strength * torch.randn_like(picture)


class Pictures(Dataset):
    def __init__(self, count, classes, transform):
        generator = torch.Generator().manual_seed(0)
        self.pictures = torch.rand(count, 3, 40, 40, generator=generator)
        self.labels = torch.randint(classes, (count,), generator=generator)
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=8)
    options = parser.parse_args()

    torch.manual_seed(0)
    transform = transforms.Compose(
        [
            transforms.RandomCrop(32),
            transforms.RandomHorizontalFlip(),
            ExposureOfCamera(),
            Noise(0.02),
            transforms.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    loader = DataLoader(Pictures(2000, 10, transform), batch_size=options.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
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
