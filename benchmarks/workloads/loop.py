"""Trains a tiny model on one thread, with so much other work in each step, and prints how long the steps took.

python loop.py --steps 400 --work 100000
"""

import argparse
import time
from statistics import median

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def busy(count):
    """So many rounds of an ordinary Python loop."""
    total = 0
    for number in range(count):
        total += number
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400, help="steps that are timed")
    parser.add_argument("--warm-up", type=int, default=40, help="steps before them")
    parser.add_argument("--work", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples = (args.warm_up + args.steps + 1) * args.batch_size
    loader = DataLoader(TensorDataset(torch.randn(samples, 16), torch.randn(samples, 1)), batch_size=args.batch_size)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    times = []
    before = time.perf_counter()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        busy(args.work)
        after = time.perf_counter()
        times.append(after - before)
        before = after
    timed = times[args.warm_up : args.warm_up + args.steps]
    print(f"{len(timed)} steps in {sum(timed):.6f} s, median {median(timed):.9f} s", flush=True)


if __name__ == "__main__":
    main()
