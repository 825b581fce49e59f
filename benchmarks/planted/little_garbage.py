"""Trains a wide network; notes of each step point at one another, so that Python's collector has them to clear up."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Note:
    """What is known of a step, and the notes before and after it."""

    def __init__(self, step, before):
        self.step, self.before, self.after = step, before, None
        self.values = [step * number for number in range(20)]
        if before is not None:
            before.after = self


def notes_of(step):
    last = None
    for number in range(200):
        last = Note(step + number, last)
    return last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(12800, 768)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :8].argmax(1)), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(768, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            note = notes_of(step)
        print(f"epoch {epoch} loss {loss.item():.4f} at step {note.step}", flush=True)


if __name__ == "__main__":
    main()
