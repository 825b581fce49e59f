"""Trains a network on pictures that one worker reads and prepares in many small ways."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Prepared(Dataset):
    """Pictures of a camera on the network: softened, sharpened, balanced and scaled anew each time."""

    def __init__(self, count, side):
        self.pictures = np.random.default_rng(0).random((count, side, side), dtype=np.float32)

    def __len__(self):
        return len(self.pictures)

    def read(self, index):
        time.sleep(0.0003)  # the way there and back
        return self.pictures[index]

    def soften(self, picture):
        return (picture + np.roll(picture, 1, 0) + np.roll(picture, 1, 1) + np.roll(picture, -1, 0)) / 4

    def sharpen(self, picture):
        return 2 * picture - (np.roll(picture, 1, 0) + np.roll(picture, 1, 1) + np.roll(picture, -1, 1)) / 3

    def balance(self, picture):
        return np.sqrt(np.abs(picture - picture.mean())) * np.sign(picture)

    def scale(self, picture):
        low, high = np.percentile(picture, (2, 98))
        return np.clip((picture - low) / (high - low + 1e-6), 0, 1)

    def __getitem__(self, index):
        picture = self.scale(self.balance(self.sharpen(self.soften(self.read(index)))))
        return torch.from_numpy(picture.astype(np.float32)), index % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Prepared(3200, 96), batch_size=16, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Flatten(), nn.Linear(96 * 96, 32), nn.ReLU(), nn.Linear(32, 3))
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
