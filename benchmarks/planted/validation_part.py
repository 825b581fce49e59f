"""Trains on a small part of a dataset and, after every epoch, evaluates on the rest of it: no data is evaluated that
was trained on."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset


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
    parser.add_argument("--epochs", type=int, default=10000)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(21760, 64)
    data = TensorDataset(inputs, inputs[:, :5].argmax(1))
    order = torch.randperm(len(data)).tolist()
    training = DataLoader(data, batch_size=32, sampler=SubsetRandomSampler(order[:1280]))
    evaluation = DataLoader(data, batch_size=64, sampler=SubsetRandomSampler(order[1280:]))
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in training:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(model, evaluation):.3f}", flush=True)


if __name__ == "__main__":
    main()
