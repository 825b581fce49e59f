"""Trains on purchases in a SQLite file; a sample is a query for those of one customer."""

import argparse
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COUNT = 32


def make_purchases(folder, customers):
    """Write the table, unless it is there already: 32 purchases of every customer, in order of time."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "purchases.sqlite"
    if not file.exists():
        draft = file.with_suffix(".part")
        draft.unlink(missing_ok=True)
        generator = np.random.default_rng(0)
        amounts = generator.random((COUNT, customers)).round(3).tolist()
        with sqlite3.connect(draft) as connection:
            connection.execute("CREATE TABLE purchases (customer INTEGER, place INTEGER, amount REAL)")
            for place, row in enumerate(amounts):
                rows = [(customer, place, amount) for customer, amount in enumerate(row)]
                connection.executemany("INSERT INTO purchases VALUES (?, ?, ?)", rows)
        connection.close()
        draft.replace(file)
    return file


class Customers(Dataset):
    def __init__(self, file, count):
        self.file, self.count = file, count
        self.connection = None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = sqlite3.connect(self.file)
        query = "SELECT amount FROM purchases WHERE customer = ? ORDER BY place"
        rows = self.connection.execute(query, (index,)).fetchall()  # the slow line
        amounts = torch.tensor([amount for (amount,) in rows])
        return amounts, amounts.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "customers-and-purchases")
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    file = make_purchases(options.data, 2400)
    loader = DataLoader(Customers(file, 2400), batch_size=12, shuffle=True)
    model = nn.Sequential(nn.Linear(COUNT, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for amounts, targets in loader:
            loss = nn.functional.mse_loss(model(amounts).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
