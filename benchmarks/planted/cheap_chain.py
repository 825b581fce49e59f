"""Trains a convolutional network on pictures in memory, which a short chain of transforms flips and scales."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


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
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    torch.manual_seed(0)
    transform = transforms.Compose(
        [transforms.RandomCrop(32), transforms.RandomHorizontalFlip(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
    )
    loader = DataLoader(Pictures(1600, 10, transform), batch_size=options.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(64, 128, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(128, 128, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
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
