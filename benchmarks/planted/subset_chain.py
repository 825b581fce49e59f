"""Trains a classifier on nine tenths of a set of pictures in memory, bent and cut at random; the rest is for later."""

import argparse

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from torchvision import transforms


class Pictures(Dataset):
    def __init__(self, count, classes, transform):
        generator = np.random.default_rng(0)
        self.pictures = [Image.fromarray(generator.integers(0, 256, (72, 72, 3), dtype=np.uint8)) for _ in range(count)]
        self.classes, self.transform = classes, transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), index % self.classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    transform = transforms.Compose(
        [
            transforms.RandomHorizontalFlip(),
            transforms.ElasticTransform(alpha=40.0),  # the slow line
            transforms.RandomCrop(64),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    pictures = Pictures(1800, 10, transform)
    training, _ = random_split(pictures, [1600, 200], generator=torch.Generator().manual_seed(0))
    loader = DataLoader(training, batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
