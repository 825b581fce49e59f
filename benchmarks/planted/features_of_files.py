"""Trains on stamps, one small PNG file each; a sample is how often every pair of grey values meets in a stamp."""

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

LEVELS = 16


def make_stamps(folder, count):
    """Write what is missing of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        cells = generator.integers(0, 256, (8, 8), dtype=np.uint8)
        file = folder / f"{number:04d}.png"
        if not file.exists():
            draft = file.with_suffix(".part")
            Image.fromarray(cells).resize((48, 48), Image.Resampling.NEAREST).save(draft, format="PNG")
            draft.replace(file)


def meetings(grey):
    """Of every two levels, the part of all neighbours that have them."""
    levels = (grey // (256 // LEVELS)).tolist()
    counts = [[0] * LEVELS for _ in range(LEVELS)]
    for above, below in itertools.pairwise(levels):
        for one, other in zip(above, below, strict=True):
            counts[one][other] += 1  # the slow line
    for row in levels:
        for one, other in itertools.pairwise(row):
            counts[one][other] += 1  # the slow line
    table = np.array(counts, dtype=np.float32)
    smooth = [np.linalg.matrix_power(table / table.sum(), power) for power in range(1, 40)]  # the slow line
    return torch.from_numpy(np.sum(smooth, 0).astype(np.float32)).flatten()


class Stamps(Dataset):
    def __init__(self, folder, classes):
        self.files = sorted(folder.glob("*.png"))
        self.classes = classes

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        grey = np.asarray(Image.open(self.files[index]).convert("L"))
        return meetings(grey), index % self.classes  # the slow line


def join(samples):
    """A batch of samples."""
    return torch.stack([values for values, _ in samples]), torch.tensor([label for _, label in samples])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "stamps-in-files")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_stamps(options.data, 1200)
    loader = DataLoader(Stamps(options.data, 5), batch_size=16, shuffle=True, collate_fn=join)
    model = nn.Sequential(nn.Linear(LEVELS * LEVELS, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for values, labels in loader:
            loss = nn.functional.cross_entropy(model(values), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
