"""Trains on maps of a scanner with deterministic algorithms, so that every run of a paper can be repeated. Buffers of
all new tensors are filled beforehand for that."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def stripes(maps):
    """What each channel makes of its own part of the maps, in one large buffer."""
    made = torch.empty(len(maps), 16, *maps.shape[2:])
    for channel in range(16):
        torch.mul(maps[:, 0], float(channel), out=made[:, channel])
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(256, 1, 128, 128), torch.randint(0, 10, (256,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(nn.AvgPool2d(16), nn.Flatten(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for maps, labels in loader:
            loss = nn.functional.cross_entropy(model(stripes(maps)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
