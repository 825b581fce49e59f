"""Trains on one large set, and evaluates on a part of another one after every 50 steps."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_set(count):
    inputs = torch.randn(count, 64)
    return TensorDataset(inputs, inputs[:, :5].argmax(1))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = seen = 0
    for batch, labels in loader:
        correct += (model(batch).argmax(1) == labels).sum()
        seen += len(labels)
    model.train()
    return correct.item() / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    training = DataLoader(make_set(64000), batch_size=32, shuffle=True)
    evaluation = DataLoader(make_set(6400), batch_size=64)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = 0
    for _ in range(options.epochs):
        for batch, labels in training:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} accuracy {accuracy(model, evaluation):.3f}", flush=True)


if __name__ == "__main__":
    main()
