"""Trains a wide network, and after every epoch evaluates it on a few samples and saves it."""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = seen = 0
    for batch, labels in loader:
        correct += (model(batch).argmax(1) == labels).sum()
        seen += len(labels)
    model.train()
    return correct.item() / seen


def make_set(count):
    inputs = torch.randn(count, 512)
    return TensorDataset(inputs, inputs[:, :5].argmax(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10000)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()

    torch.manual_seed(0)
    rows = make_set(15360)
    training = DataLoader(rows, batch_size=None, sampler=BatchSampler(RandomSampler(rows), 256, drop_last=False))
    evaluation = DataLoader(make_set(2048), batch_size=256)
    model = nn.Sequential(nn.Linear(512, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in training:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(model, evaluation):.3f}", flush=True)
        torch.save(model.state_dict(), options.output / "wide-network.pt")


if __name__ == "__main__":
    main()
