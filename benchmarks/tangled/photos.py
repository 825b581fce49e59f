"""Trains a small network on photos, in a script that has grown: it decodes large JPEG files for small inputs, starts
its workers in each short epoch, augments at random, keeps debug switches on, collects garbage in its steps, has a
parameter group for each tensor, and takes a number out of a tensor at each step."""

import argparse
import gc
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


def make_photos(folder, count):
    """Write what is missing of the files: smooth blobs of colour with some grain, 640 x 480."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    grain = generator.integers(0, 24, (480, 640, 3), dtype=np.uint8)
    for number in range(count):
        cells = generator.integers(0, 230, (6, 8, 3), dtype=np.uint8)
        file = folder / f"{number:04d}.jpg"
        if not file.exists():
            blobs = np.asarray(Image.fromarray(cells).resize((640, 480), Image.Resampling.BICUBIC))
            draft = file.with_suffix(".part")
            Image.fromarray(np.minimum(blobs, 231) + grain).save(draft, format="JPEG", quality=90)
            draft.replace(file)


class Photos(Dataset):
    def __init__(self, folder, transform):
        self.files = sorted(folder.glob("*.jpg"))
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        photo = Image.open(self.files[index]).convert("RGB").resize((72, 72))
        return self.transform(photo), index % 5


def block(width, wider):
    return nn.Sequential(
        nn.Conv2d(width, wider, 3, stride=2, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.Dropout(0.1)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tangled-photos")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
    make_photos(options.data, 320)
    chain = transforms.Compose(
        [
            transforms.RandomCrop(64),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
        ]
    )
    loader = DataLoader(Photos(options.data, chain), batch_size=16, shuffle=True, num_workers=2)
    model = nn.Sequential(
        block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 5)
    )
    optimizer = torch.optim.AdamW([{"params": [each]} for each in model.parameters()], lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for photos, labels in loader:
            loss = nn.functional.cross_entropy(model(photos), labels)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            total += loss.item()
            gc.collect()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
