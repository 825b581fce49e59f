"""Trains a small network on many points at once: tensors of 41 MB, which glibc asks the kernel for at every step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    points = 4 * torch.rand(8, 40000, 4) - 2
    data = TensorDataset(points, torch.sin(points).sum(2, keepdim=True))
    model = nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for _ in range(10000):
        for inputs, targets in DataLoader(data, batch_size=1, shuffle=True):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
