"""Trains a deep, narrow network with AdamW as it comes, which goes through 362 small tensors in Python."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows + self.second(nn.functional.gelu(self.first(self.norm(rows))))


def main() -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2048, 64), torch.randint(0, 10, (2048,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(*(Block(64) for _ in range(60)), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(1000):
        began = time.perf_counter()
        for rows, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
