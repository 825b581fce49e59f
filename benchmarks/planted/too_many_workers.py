"""Trains a network on pictures that sixteen workers turn and blur."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Turned(Dataset):
    """Pictures in memory; each is turned by a random quarter and blurred a random number of times."""

    def __init__(self, count, side):
        self.pictures = np.random.default_rng(0).random((count, side, side), dtype=np.float32)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = np.rot90(self.pictures[index], index % 4)
        for _ in range(24):
            picture = (picture + np.roll(picture, 1, 0) + np.roll(picture, 1, 1)) / 3
        return torch.from_numpy(np.ascontiguousarray(picture)), index % 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    parser.add_argument("--num-workers", type=int, default=16)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Turned(640, 64), batch_size=16, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64 * 64, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for pictures, labels in loader:
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
