"""What these programs share: rows that are waited for, as if a store elsewhere gave them, and a small net."""

import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

SECONDS = 0.004
"""A row is waited for as long as this."""


class Rows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(SECONDS)
        row = torch.full((256,), float(index % 97)) / 97
        return row, torch.tensor(index % 10)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows)


def train(loader: Any, epochs: int = 1000) -> None:
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(epochs):
        for rows, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows), labels).backward()
            optimizer.step()
