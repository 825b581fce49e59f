"""Trains a small classifier on JPEG files that are only a little larger than what is made of them."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_pictures(folder, count):
    """Write what is missing of the files: smooth blobs of colour with some grain, 480 x 360."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    grain = generator.integers(0, 24, (360, 480, 3), dtype=np.uint8)
    for number in range(count):
        cells = generator.integers(0, 230, (6, 8, 3), dtype=np.uint8)
        file = folder / f"{number:04d}.jpg"
        if not file.exists():
            blobs = np.asarray(Image.fromarray(cells).resize((480, 360), Image.Resampling.BICUBIC))
            draft = file.with_suffix(".part")
            Image.fromarray(np.minimum(blobs, 231) + grain).save(draft, format="JPEG", quality=90)
            draft.replace(file)


class Pictures(Dataset):
    def __init__(self, folder, classes):
        self.files = sorted(folder.glob("*.jpg"))
        self.classes = classes

    def __len__(self):
        return len(self.files) * 10

    def __getitem__(self, index):
        file = self.files[index % len(self.files)]
        picture = Image.open(file).convert("RGB")  # the slow line
        small = picture.resize((256, 192), Image.Resampling.NEAREST)
        pixels = torch.from_numpy(np.array(small)).permute(2, 0, 1)
        return pixels.float() / 255, int(file.stem) % self.classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "pictures-in-size")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_pictures(options.data, 40)
    loader = DataLoader(Pictures(options.data, 5), batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 5)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(1, options.epochs + 1):
        for pictures, labels in loader:
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
