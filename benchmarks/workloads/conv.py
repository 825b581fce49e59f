"""Trains a convolutional network on pictures that lie in memory.

python conv.py --epochs 20
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(samples, classes, generator):
    """Noise around one smooth pattern a class, 3 x 32 x 32."""
    patterns = nn.functional.interpolate(torch.randn(classes, 3, 4, 4, generator=generator), size=32, mode="bilinear")
    labels = torch.randint(classes, (samples,), generator=generator)
    return TensorDataset(patterns[labels] + torch.randn(samples, 3, 32, 32, generator=generator), labels)


def make_model(classes):
    def block(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)
        )

    return nn.Sequential(
        block(3, 16),
        block(16, 32),
        block(32, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=0, help="end each epoch after this many steps")
    parser.add_argument("--samples", type=int, default=3200)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    dataset = make_data(args.samples, args.classes, torch.Generator().manual_seed(args.seed))
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers, drop_last=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = make_model(args.classes).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        total = 0.0
        for step, (images, labels) in enumerate(loader, 1):
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            output = model(images)
            loss = criterion(output, labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step == args.steps:
                break
        print(f"epoch {epoch} loss {total / step:.4f} {time.perf_counter() - started:.3f} s", flush=True)


if __name__ == "__main__":
    main()
