"""Training whose speed is known beforehand: loading and computing take given times, and nothing else happens.

python analytic.py KIND [--load SECONDS] [--compute SECONDS] [--batches N] [--epochs N]
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


def slow_one_in_ten(index):
    """The same tenth of the samples in every run, scattered evenly."""
    return (index * 7) % 10 == 3


class Samples(Dataset):
    def __init__(self, count, seconds, slow_seconds=None):
        self.count, self.seconds, self.slow_seconds = count, seconds, slow_seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        slow = self.slow_seconds is not None and slow_one_in_ten(index)
        time.sleep(self.slow_seconds if slow else self.seconds)
        return torch.full((4,), float(index % 5)), index % 2


class Stream(IterableDataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __iter__(self):
        worker = get_worker_info()
        start, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for index in range(start, self.count, step):
            time.sleep(self.seconds)
            yield torch.full((4,), float(index % 5)), index % 2


class Unequal:
    """Batches of 2, 8, 5, 11 samples in turn."""

    sizes = (2, 8, 5, 11)

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        start = 0
        for number in range(self.batches):
            size = self.sizes[number % 4]
            yield list(range(start, start + size))
            start += size


def make_loader(kind, load, batches):
    if kind == "iterable":
        return DataLoader(Stream(4 * batches, load / 4), batch_size=4)
    if kind == "unequal":
        batch_sampler = Unequal(batches)
        return DataLoader(Samples(100 * batches, load / 6.5), batch_sampler=batch_sampler)
    if kind == "slow-sample":
        # Nine of ten at a tenth of what the tenth takes: the mean over samples is load / 4.
        quick = load / 4 / 1.9
        return DataLoader(Samples(4 * batches, quick, 10 * quick), batch_size=4)
    return DataLoader(Samples(4 * batches, load / 4), batch_size=4, shuffle=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["map", "iterable", "unequal", "slow-sample", "no-loader"])
    parser.add_argument("--load", type=float, default=0.05)
    parser.add_argument("--compute", type=float, default=0.02)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(inputs, labels):
        time.sleep(options.compute * (len(labels) / 6.5 if options.kind == "unequal" else 1.0))
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if options.kind == "no-loader":
        inputs, labels = torch.randn(4, 4), torch.tensor([0, 1, 0, 1])
        for _ in range(options.epochs * options.batches):
            step(inputs, labels)
        return
    loader = make_loader(options.kind, options.load, options.batches)
    for _ in range(options.epochs):
        for inputs, labels in loader:
            step(inputs, labels)


if __name__ == "__main__":
    main()
