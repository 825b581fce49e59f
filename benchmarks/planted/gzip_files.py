"""Trains on recordings, each in a gzip file of its own."""

import argparse
import gzip
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 200_000


def make_recordings(folder, count):
    """Write what is missing of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        recording = np.cumsum(generator.integers(-3, 4, LENGTH), dtype=np.int16)
        file = folder / f"{number:03d}.gz"
        if not file.exists():
            draft = file.with_suffix(".part")
            draft.write_bytes(gzip.compress(recording.tobytes(), compresslevel=6, mtime=0))
            draft.replace(file)


class Recordings(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.gz"))

    def __len__(self):
        return 20 * len(self.files)

    def __getitem__(self, index):
        with gzip.open(self.files[index % len(self.files)]) as file:
            samples = file.read()  # the slow line
        recording = torch.frombuffer(bytearray(samples), dtype=torch.int16)
        return recording[:: LENGTH // 500].float() / 100, index % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "recordings-in-gzip")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_recordings(options.data, 60)
    loader = DataLoader(Recordings(options.data), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(500, 128), nn.ReLU(), nn.Linear(128, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for recordings, kinds in loader:
            loss = nn.functional.cross_entropy(model(recordings), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
