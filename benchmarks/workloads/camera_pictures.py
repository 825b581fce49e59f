"""Trains a small network on large JPEG files: random parts of them, made small. A file stands for many samples, so that
they can't all be kept in memory. With `--size 160`, the files are hardly larger than what is made of them.

python camera_pictures.py --size 160
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

SAMPLES = 20000


def write(folder: Path, count: int, size: int) -> None:
    """Blobs of colour with some grain, three to four."""
    random = np.random.default_rng(0)
    grain = random.integers(0, 24, (size * 3 // 4, size, 3), dtype=np.uint8)
    for index in range(count):
        coarse = Image.fromarray(random.integers(0, 230, (6, 8, 3), dtype=np.uint8))
        blobs = np.asarray(coarse.resize((size, size * 3 // 4), Image.Resampling.BICUBIC))
        Image.fromarray(np.minimum(blobs, 231) + grain).save(folder / f"{index}.jpg", quality=90)


class Camera(Dataset):
    def __init__(self, folder: Path, transform: transforms.Compose) -> None:
        self.files = sorted(folder.glob("*.jpg"))
        self.transform = transform

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        file = self.files[index % len(self.files)]
        picture = Image.open(file).convert("RGB")
        return self.transform(picture), int(file.stem) % 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1600)
    parser.add_argument("--count", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), args.count, args.size)
        chain = transforms.Compose(
            [
                transforms.RandomResizedCrop(96, scale=(0.5, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
            ]
        )
        loader = DataLoader(Camera(Path(folder), chain), batch_size=16, shuffle=True)
        model = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
        ).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        began = time.perf_counter()
        for step, (images, labels) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"{20 * (time.perf_counter() - began):.1f} ms a step", flush=True)
                began = time.perf_counter()


if __name__ == "__main__":
    main()
