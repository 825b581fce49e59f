"""Trains a deep and narrow network on small batches: the device waits for its launches more than it computes.

python launches.py
python launches.py --epochs 4 --edit compile --edit fused-optimizer

Each `--edit` makes by hand the change that doctor's fix of that name asks for.
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

WIDTH, LAYERS, BATCH = 128, 40, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x + self.scale * self.down(functional.gelu(self.up(self.norm(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--batches", type=int, default=100, help="of an epoch")
    parser.add_argument("--edit", action="append", default=[])
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    count = BATCH * args.batches
    loader = DataLoader(TensorDataset(torch.randn(count, WIDTH), torch.randint(10, (count,))), BATCH, shuffle=True)
    model = nn.Sequential(*(Layer() for _ in range(LAYERS)), nn.Linear(WIDTH, 10)).to(device)
    if "compile" in args.edit:
        model = torch.compile(model)
    fused = True if "fused-optimizer" in args.edit else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        losses = []
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            loss = functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {losses[-1]:.4f} {time.perf_counter() - started:.3f} s", flush=True)


if __name__ == "__main__":
    main()
