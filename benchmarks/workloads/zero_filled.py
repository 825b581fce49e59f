"""Trains wide layers on small batches, and fills their gradients of 200 MB with zeros before each step."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(256, 4096), torch.randint(0, 10, (256,)))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = nn.Sequential(
        nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.Linear(4096, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(1000):
        began = time.perf_counter()
        for rows, labels in loader:
            optimizer.zero_grad(set_to_none=False)
            nn.functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
