"""Trains on sounds; a function, given to the data set as its transform, makes each a row of loudness by pitch."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def loudness_by_pitch(sound):
    """How loud each of 64 bands is, in decibels."""
    pieces = np.lib.stride_tricks.sliding_window_view(sound, 1024)[::128]
    power = np.abs(np.fft.rfft(pieces * np.hanning(1024), axis=1)) ** 2  # the slow line
    bands = power[:, :512].reshape(len(power), 64, 8).sum(2)
    return torch.from_numpy((10 * np.log10(bands.mean(0) + 1e-6)).astype(np.float32))


class Sounds(Dataset):
    def __init__(self, kinds, count, transform=None):
        self.sounds = np.random.default_rng(0).standard_normal((kinds, 64_000)).astype(np.float32)
        self.count, self.transform = count, transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        sound = self.sounds[index % len(self.sounds)]
        if self.transform:
            sound = self.transform(sound)
        return sound, index % 6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    sounds = Sounds(200, 1600, transform=loudness_by_pitch)
    loader = DataLoader(sounds, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(1, options.epochs + 1):
        for rows, labels in loader:
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
