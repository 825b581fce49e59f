"""Trains a small network on JPEG files and masks, as segmentation does: both are decoded for every epoch, and
albumentations crops, flips and brightens them at random."""

import tempfile
import time
from pathlib import Path

import albumentations as A
import cv2
import numpy as np
import torch
from albumentations.pytorch import ToTensorV2
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write(folder: Path, count: int, size: int) -> None:
    """Pictures of noise, and a mask for each."""
    random = np.random.default_rng(0)
    for index in range(count):
        picture = cv2.resize(random.integers(0, 256, (24, 24, 3), dtype=np.uint8), (size, size))
        cv2.imwrite(str(folder / f"{index}.jpg"), picture)
        cv2.imwrite(str(folder / f"{index}.png"), np.uint8(picture[:, :, 0] > 128))


class Masks(Dataset):
    def __init__(self, folder, transform=None):
        self.pictures = sorted(Path(folder).glob("*.jpg"))
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = cv2.cvtColor(cv2.imread(str(self.pictures[index])), cv2.COLOR_BGR2RGB)
        mask = cv2.imread(str(self.pictures[index].with_suffix(".png")), cv2.IMREAD_GRAYSCALE)
        if self.transform is not None:
            augmented = self.transform(image=picture, mask=mask)
            picture, mask = augmented["image"], augmented["mask"]
        return picture, mask.float()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), 400, 512)
        train_transform = A.Compose(
            [
                A.RandomCrop(64, 64),
                A.HorizontalFlip(p=0.5),
                A.RandomBrightnessContrast(p=0.2),
                A.Normalize(),
                ToTensorV2(),
            ]
        )
        train_set = Masks(folder, train_transform)
        train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
        model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        criterion = nn.BCEWithLogitsLoss()
        for _ in range(1000):
            began = time.perf_counter()
            for pictures, masks in train_loader:
                loss = criterion(model(pictures.to(device)).squeeze(1), masks.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"{1000 * (time.perf_counter() - began) / len(train_loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
