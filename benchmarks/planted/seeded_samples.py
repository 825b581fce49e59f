"""Trains on noisy rows. Each sample's noise is the same in every epoch, since its number seeds it."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyRows(Dataset):
    """Rows in memory, with noise of their own."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        torch.manual_seed(index)  # the slow line
        row = self.rows[index] + 0.1 * torch.randn(len(self.rows[index]))
        return row, row.sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    rows = torch.randn(3200, 64)
    loader = DataLoader(NoisyRows(rows), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for batch, targets in loader:
            loss = nn.functional.mse_loss(model(batch).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
