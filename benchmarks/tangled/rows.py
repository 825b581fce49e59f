"""Trains a deep, narrow network on the rows of a table, in a script that has grown: it spawns its workers in each
epoch, fetches rows one by one, computes in float64, collects garbage in its steps, has a parameter group for each
tensor, and takes numbers out of tensors at each step."""

import argparse
import gc

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = 64


class Rows(Dataset):
    def __init__(self, count):
        generator = np.random.default_rng(0)
        self.table = generator.standard_normal((count, COLUMNS))
        self.answers = self.table[:, :4].argmax(1)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        row = self.table[index]
        scaled = (row - row.mean()) / (row.std() + 1e-6)
        return torch.from_numpy(np.sort(scaled)), torch.tensor(self.answers[index])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    loader = DataLoader(
        Rows(16384), batch_size=64, shuffle=True, num_workers=1, multiprocessing_context="spawn", drop_last=True
    )
    layers = [
        nn.Sequential(nn.Linear(COLUMNS, COLUMNS), nn.LayerNorm(COLUMNS), nn.ReLU(), nn.Dropout(0.1)) for _ in range(24)
    ]
    model = nn.Sequential(*layers, nn.Linear(COLUMNS, 4)).double()
    optimizer = torch.optim.AdamW([{"params": [each]} for each in model.parameters()], lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        right = total = 0.0
        for rows, answers in loader:
            said = model(rows)
            loss = nn.functional.cross_entropy(said, answers)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            total += loss.item()
            right += (said.argmax(1) == answers).double().mean().item()
            gc.collect()
        print(f"epoch {epoch} loss {total / len(loader):.4f} right {right / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
