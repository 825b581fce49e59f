"""Trains for an epoch, and then computes loss and accuracy of the training data once more, beside those of a test
set."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def accuracy(model, loader):
    correct = seen = 0
    for batch, labels in loader:
        correct += (model(batch).argmax(1) == labels).sum()
        seen += len(labels)
    return correct.item() / seen


@torch.no_grad()
def mean_loss(model, loader):
    total = seen = 0
    for batch, labels in loader:
        total += nn.functional.cross_entropy(model(batch), labels, reduction="sum")
        seen += len(labels)
    return total.item() / seen


def make_set(count):
    inputs = torch.randn(count, 64)
    return TensorDataset(inputs, inputs[:, :5].argmax(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    training = DataLoader(make_set(2560), batch_size=32, shuffle=True)
    test = DataLoader(make_set(320), batch_size=64)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        model.train()
        for batch, labels in training:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        for name, loader in (("training", training), ("test", test)):
            print(
                f"epoch {epoch} {name}: loss {mean_loss(model, loader):.4f} accuracy {accuracy(model, loader):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
