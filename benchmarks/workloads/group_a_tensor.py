"""Trains a deep, narrow network as many detectors are trained: an optimizer's group for each tensor, of which those of
a backbone get a smaller learning rate. AdamW is fused already, and ends with each group."""

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


def groups(model: nn.Module) -> list[dict[str, object]]:
    """Each tensor with its own learning rate and weight decay."""
    return [
        {
            "params": [parameter],
            "lr": 1e-5 if name.startswith("backbone") else 1e-4,
            "weight_decay": 1e-4 if parameter.ndim > 1 else 0.0,
        }
        for name, parameter in model.named_parameters()
    ]


def main() -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2048, 64), torch.randint(0, 10, (2048,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential()
    model.add_module("backbone", nn.Sequential(*(Block(64) for _ in range(60))))
    model.add_module("head", nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(groups(model), fused=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100)
    for _ in range(1000):
        began = time.perf_counter()
        for rows, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        schedule.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
