"""Trains a network of many heads with an optimizer of its own, which follows the sign of a slow and a quick mean."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TwoMeans(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                for name, keep in (("quick", 0.5), ("slow", 0.99)):
                    mean = state.setdefault(name, torch.zeros_like(parameter))
                    mean.copy_(keep * mean + (1 - keep) * parameter.grad)  # the slow line
                signs = torch.sign(state["quick"]) + torch.sign(state["slow"])  # the slow line
                norm = torch.sqrt(torch.sum(parameter.grad * parameter.grad)) + 1e-8  # the slow line
                parameter.copy_(parameter - group["lr"] * torch.clamp(signs / 2, -norm, norm))  # the slow line


class Heads(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.scales = nn.ParameterList(torch.randn(features) / features for _ in range(heads))

    def forward(self, inputs):
        return inputs @ torch.stack(list(self.scales), 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--heads", type=int, default=400)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(3200, 32)
    loader = DataLoader(TensorDataset(inputs, inputs.argmax(1)), batch_size=16, shuffle=True)
    model = Heads(32, options.heads)
    optimizer = TwoMeans(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  # the slow line
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
