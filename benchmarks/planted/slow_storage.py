"""Trains on records in a bucket of a far store; a reader fetches a record at a time."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bucket:
    """Stands for an object store: a read takes as long as its round trip, and hardly any computing."""

    def __init__(self, count, size):
        self.records = np.random.default_rng(0).random((count, size), dtype=np.float32)

    def read(self, key):
        time.sleep(0.012)  # the slow line
        return self.records[key].tobytes()


class Records(Dataset):
    def __init__(self, bucket, count):
        self.bucket, self.count = bucket, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        values = torch.frombuffer(bytearray(self.bucket.read(index)), dtype=torch.float32)  # the slow line
        return values, values[:8].sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    dataset = Records(Bucket(3200, 512), 3200)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for values, targets in loader:
            loss = nn.functional.mse_loss(model(values).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
