"""Trains on a small archive for very many epochs; each of the loader's two workers opens the archive when it starts."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    """A few records on a storage that takes two milliseconds to answer."""

    def __init__(self, count, size):
        generator = torch.Generator().manual_seed(0)
        self.records = torch.randn(count, size, generator=generator)

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        time.sleep(0.002)
        return self.records[index], index % 2


def open_archive(worker):
    """A connection of the worker's own, which the storage takes its time for."""
    time.sleep(0.3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    workers = {"num_workers": options.num_workers, "worker_init_fn": open_archive}
    loader = DataLoader(Archive(80, 512), batch_size=8, shuffle=True, **workers)
    model = nn.Sequential(nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for records, labels in loader:
            loss = nn.functional.cross_entropy(model(records), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
