"""Trains on measurements of buoys; each has a small file, and a service that is asked how its sensor was set."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_measurements(folder, count):
    """Write what is missing of the files, one a buoy."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        values = generator.standard_normal(512).astype(np.float32)
        file = folder / f"{number:04d}.f32"
        if not file.exists():
            draft = file.with_suffix(".part")
            draft.write_bytes(values.tobytes())
            draft.replace(file)


class Buoys(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.f32"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        values = np.frombuffer(self.files[index].read_bytes(), dtype=np.float32)
        time.sleep(0.003)  # the slow line
        values = torch.from_numpy(values.copy()) * 0.8
        return values, values[:16].sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "buoy-measurements")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_measurements(options.data, 1600)
    loader = DataLoader(Buoys(options.data), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for values, targets in loader:
            loss = nn.functional.mse_loss(model(values).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
