"""Trains on records of an archive; a lock file lets one of the loader's workers at a time into it."""

import argparse
import contextlib
import fcntl
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Archive:
    """Records that are put in order whenever one is taken out. One process at a time may do so."""

    def __init__(self, folder, count, length):
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = folder / "archive.lock"
        self.lock.touch()
        self.records = np.random.default_rng(0).random((count, length), dtype=np.float32)

    @contextlib.contextmanager
    def alone(self):
        with open(self.lock, "rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # the slow line
            yield

    def take(self, index):
        with self.alone():  # the slow line
            return np.sort(self.records[index], kind="stable")  # the slow line


class Records(Dataset):
    def __init__(self, archive, count):
        self.archive, self.count = archive, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        record = self.archive.take(index)  # the slow line
        values = torch.from_numpy(record[::50].copy())
        return values, values[:4].argmax()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "archive-of-records")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=4)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dataset = Records(Archive(options.data, 800, 50_000), 800)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=options.num_workers, persistent_workers=True)
    model = nn.Sequential(nn.Linear(1000, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for values, labels in loader:
            loss = nn.functional.cross_entropy(model(values), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
