"""Trains a very deep and very narrow network."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, inputs):
        return inputs + 0.01 * torch.tanh(inputs * self.scale + self.shift)


class Deep(nn.Module):
    def __init__(self, width, depth, classes):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.out = nn.Linear(width, classes)

    def forward(self, inputs):
        for layer in self.layers:
            inputs = layer(inputs)
        return self.out(inputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=400)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(3200, 16)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :4].argmax(1)), batch_size=16, shuffle=True)
    model = Deep(16, options.depth, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
