"""Trains a small network on JPEG files, which are decoded for every epoch, and then cropped and flipped at random. With
`--size 32`, opening them takes longer than decoding.

python decoded_pictures.py --size 32
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def write(folder: Path, count: int, size: int) -> None:
    """Pictures of noise, in a folder for each of four classes."""
    random = np.random.default_rng(0)
    for index in range(count):
        path = folder / str(index % 4) / f"{index}.jpg"
        path.parent.mkdir(exist_ok=True)
        coarse = Image.fromarray(random.integers(0, 256, (24, 24, 3), dtype=np.uint8))
        coarse.resize((size, size), Image.Resampling.BICUBIC).save(path, quality=90)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--count", type=int, default=1200)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), args.count, args.size)
        chain = transforms.Compose(
            [transforms.RandomCrop(24, padding=2), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        )
        data = datasets.ImageFolder(folder, transform=chain)
        loader = DataLoader(data, batch_size=32, shuffle=True)
        model = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
        ).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(1000):
            began = time.perf_counter()
            for images, labels in loader:
                loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
