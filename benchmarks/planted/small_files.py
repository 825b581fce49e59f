"""Trains on measurements of stations. Every reading of a station is a small file of its own."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS = ("wind", "rain", "light", "humidity", "pressure", "temperature", "cloud", "snow", "ozone", "dust")


def make_readings(folder, count):
    """Write the files, unless they are there already."""
    if (folder / "done").exists():
        return
    generator = np.random.default_rng(0)
    for number in range(count):
        station = folder / f"{number:04d}"
        station.mkdir(parents=True, exist_ok=True)
        for channel in CHANNELS:
            (station / f"{channel}.f32").write_bytes(generator.random(24, dtype=np.float32).tobytes())
    (folder / "done").touch()


class Stations(Dataset):
    def __init__(self, folder):
        self.folders = sorted(path for path in folder.iterdir() if path.is_dir())

    def __len__(self):
        return len(self.folders)

    def __getitem__(self, index):
        rows = []
        for channel in CHANNELS:
            with open(self.folders[index] / f"{channel}.f32", "rb") as file:  # the slow line
                rows.append(np.frombuffer(file.read(), dtype=np.float32))  # the slow line
        readings = torch.from_numpy(np.stack(rows))
        return readings, readings.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "station-readings")
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    make_readings(options.data, 500)
    loader = DataLoader(Stations(options.data), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(240, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for readings, targets in loader:
            loss = nn.functional.mse_loss(model(readings).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
