"""Trains a small network on small pictures, which go through six quick transforms one by one."""

import argparse

import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class Pictures(Dataset):
    def __init__(self, count, classes, transform):
        pixels = numpy.random.default_rng(0).integers(0, 256, (count, 36, 36, 3), dtype=numpy.uint8)
        self.pictures = [Image.fromarray(each) for each in pixels]
        self.classes = classes
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), index % self.classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()

    torch.manual_seed(0)
    transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=2),  # the slow line
            transforms.RandomHorizontalFlip(),  # the slow line
            transforms.RandomGrayscale(0.2),  # the slow line
            transforms.RandomInvert(0.3),  # the slow line
            transforms.ToTensor(),  # the slow line
            transforms.Normalize([0.5] * 3, [0.2] * 3),  # the slow line
        ]
    )
    loader = DataLoader(Pictures(3200, 10, transform), batch_size=options.batch_size, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 10))
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
