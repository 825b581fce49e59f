"""Trains on rows of a table; a row is a dictionary of numbers by the name of their column."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = tuple(f"column_{number}" for number in range(400))


class Rows(Dataset):
    """The loader's own collate makes a tensor of each of the columns."""

    def __init__(self, count):
        table = np.random.default_rng(0).random((count, len(COLUMNS)))
        self.rows = [dict(zip(COLUMNS, row, strict=True)) for row in table.tolist()]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(len(COLUMNS), 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, columns):
        return self.layers(torch.stack(list(columns.values()), 1).float()).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Rows(12800), batch_size=256, shuffle=True)
    model = Score()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for columns in loader:
            target = columns[COLUMNS[0]].float()
            loss = nn.functional.mse_loss(model(columns), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
