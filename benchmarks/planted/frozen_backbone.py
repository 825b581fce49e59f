"""Trains the last layer of a network whose other layers stay as they are, and computes them again in each epoch."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * width, classes)

    def forward(self, pictures):
        features = self.features(pictures)  # the slow line
        return self.head(features)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    pictures = torch.randn(800, 3, 32, 32)
    loader = DataLoader(TensorDataset(pictures, (pictures.mean((1, 2, 3)) > 0).long()), batch_size=32, shuffle=True)
    model = Classifier(32, 2)
    model.features.requires_grad_(False)
    model.features.eval()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
