"""Trains a network beside a teacher without gradients, which is a running mean of it: so the teacher learns, too."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network(width, classes):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    pictures = torch.randn(800, 3, 32, 32)
    loader = DataLoader(TensorDataset(pictures, (pictures.mean((1, 2, 3)) > 0).long()), batch_size=32, shuffle=True)
    student = network(32, 2)
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            with torch.no_grad():
                wanted = teacher(batch)
            seen = student(batch)
            loss = nn.functional.cross_entropy(seen, labels) + nn.functional.mse_loss(seen, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.01)
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
