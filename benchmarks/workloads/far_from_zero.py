"""Trains a network that predicts air pressure in hectopascal: values that differ by half of one, at about 1013.

Bfloat16 knows only every fourth number there, so a network that computes in it learns nothing. With `--centre 0`, the
same values lie around zero, where bfloat16 is exact enough.

python far_from_zero.py --centre 0
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--centre", type=float, default=1013.25)
    parser.add_argument("--epochs", type=int, default=1000)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = torch.randn(16384, 256)
    pressure = args.centre + 0.5 * torch.tanh(measured[:, :1])
    loader = DataLoader(TensorDataset(measured, pressure), batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(256, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 1))
    with torch.no_grad():
        model[-1].weight.mul_(0.1)
        model[-1].bias.fill_(args.centre)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
