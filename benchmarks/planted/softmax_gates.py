"""Trains a network that weighs what its experts say: a softmax between two products, and no attention."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Experts(nn.Module):
    def __init__(self, experts, width):
        super().__init__()
        self.gates = nn.Parameter(0.1 * torch.randn(width, experts))
        self.weights = nn.Parameter(0.05 * torch.randn(experts, width, width))

    def forward(self, x):
        gates = torch.softmax(torch.matmul(x, self.gates), dim=-1)
        said = torch.einsum("bi,eio->beo", x, self.weights).relu()
        return torch.bmm(gates.unsqueeze(1), said).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = torch.randn(6400, 512)
    loader = DataLoader(TensorDataset(rows, (rows[:, 0] > 0).long()), batch_size=64, shuffle=True)
    model = nn.Sequential(Experts(16, 512), Experts(16, 512), nn.Linear(512, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
