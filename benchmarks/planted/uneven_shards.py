"""Trains on a stream of shards, which the loader's workers share among themselves by number."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    """Every other shard comes from an archive that answers slowly."""

    def __init__(self, shards, records):
        self.shards, self.records = shards, records

    def __iter__(self):
        worker = get_worker_info()
        first, every = (worker.id, worker.num_workers) if worker else (0, 1)
        for shard in range(first, self.shards, every):
            generator = torch.Generator().manual_seed(shard)
            for _ in range(self.records):
                time.sleep(0.01 if shard % 2 else 0.0005)
                values = torch.randn(64, generator=generator)
                yield values, values[:4].argmax()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Shards(40, 160), batch_size=8, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
