"""Trains a small network on a table in memory: every row is taken out of its tensors by itself, and then they are
stacked."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    table = torch.randn(args.rows, 28)
    data = TensorDataset(table, (table[:, :3].sum(1) > 0).long())
    loader = DataLoader(data, batch_size=1024, shuffle=True, num_workers=args.num_workers)
    model = nn.Sequential(nn.Linear(28, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(args.epochs):
        began = time.perf_counter()
        for rows, labels in loader:
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.2f} ms a step", flush=True)


if __name__ == "__main__":
    main()
