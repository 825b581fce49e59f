"""Trains a network that removes noise, on pictures in memory that are augmented one by one in the loader's workers."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Chain:
    """Transforms, one after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class Flip:
    def __call__(self, picture):
        return picture[:, ::-1] if np.random.rand() < 0.5 else picture


class MedianFilter:
    """Replaces every pixel by the median of the square around it."""

    def __init__(self, size):
        self.size = size

    def __call__(self, picture):
        padded = np.pad(picture, self.size // 2, mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.size, self.size))
        return np.median(windows, axis=(-2, -1))  # the slow line


class Brightness:
    def __call__(self, picture):
        return picture * np.random.uniform(0.8, 1.2)


class ToTensor:
    def __call__(self, picture):
        return torch.from_numpy(picture.astype(np.float32))[None]


class Pictures(Dataset):
    def __init__(self, count, size, transform):
        self.pictures = np.random.default_rng(0).random((count, size, size), dtype=np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    transform = Chain([Flip(), MedianFilter(5), Brightness(), ToTensor()])
    dataset = Pictures(1600, 64, transform)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Conv2d(1, 4, 4, stride=4), nn.ReLU(), nn.ConvTranspose2d(4, 1, 4, stride=4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for pictures in loader:
            noisy = pictures + 0.1 * torch.randn_like(pictures)
            loss = nn.functional.mse_loss(model(noisy), pictures)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
