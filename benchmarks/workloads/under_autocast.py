"""Trains a network under autocast in bfloat16: narrow layers lose time to conversions, wide ones may gain.

python under_autocast.py --width 1024 --blocks 4
"""

import argparse
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = TensorDataset(torch.randn(2048, args.width), torch.randint(0, 10, (2048,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(*(Block(args.width) for _ in range(args.blocks)), nn.Linear(args.width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(1000):
        began = time.perf_counter()
        for rows, labels in loader:
            with torch.autocast(device, dtype=torch.bfloat16):
                answers = model(rows.to(device))
                loss = nn.functional.cross_entropy(answers, labels.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
