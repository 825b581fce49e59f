"""Trains a small network on rows of a far table, with noise, as dictionaries of many columns: a worker hands forty
tensors over for each batch."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = [f"column_{number}" for number in range(40)]


class Rows(Dataset):
    def __init__(self, count):
        self.columns = {name: torch.randn(count, 8) for name in COLUMNS}

    def __len__(self):
        return len(self.columns[COLUMNS[0]])

    def __getitem__(self, index):
        return {name: values[0] for name, values in self.__getitems__([index]).items()}

    def __getitems__(self, indices):
        time.sleep(0.02)  # The storage answers.
        rows = torch.tensor(indices)
        return {name: values[rows] + 0.01 * torch.randn(len(rows), 8) for name, values in self.columns.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Rows(args.rows), batch_size=64, shuffle=True, collate_fn=lambda batch: batch, num_workers=args.num_workers
    )
    model = nn.Sequential(nn.Linear(8 * len(COLUMNS), 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(args.epochs):
        began = time.perf_counter()
        for batch in loader:
            rows = torch.cat([batch[name] for name in COLUMNS], dim=1)
            loss = (model(rows).squeeze(1) - rows.mean(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.2f} ms a step", flush=True)


if __name__ == "__main__":
    main()
