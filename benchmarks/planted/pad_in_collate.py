"""Trains a recurrent network on strokes of a pen, given as lists of points, which become tensors in the collate."""

import argparse
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Strokes(Dataset):
    """Lists of points (x, y, pressure), and which of three letters they are of."""

    def __init__(self, count):
        generator = random.Random(0)
        self.strokes = [
            [[generator.random() for _ in range(3)] for _ in range(generator.randrange(800, 1600))]
            for _ in range(count)
        ]

    def __len__(self):
        return 4 * len(self.strokes)

    def __getitem__(self, index):
        return self.strokes[index % len(self.strokes)], index % 3


def pad(samples):
    """Strokes as one tensor, and their lengths."""
    points = [torch.tensor(stroke) for stroke, _ in samples]  # the slow line
    lengths = torch.tensor([len(stroke) for stroke, _ in samples])
    letters = torch.tensor([letter for _, letter in samples])
    return pad_sequence(points, batch_first=True), lengths, letters


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Linear(3, 16)
        self.letters = nn.Linear(16, 3)

    def forward(self, points, lengths):
        read = self.points(points).relu().sum(1) / lengths[:, None]
        return self.letters(read)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Strokes(800), batch_size=32, shuffle=True, collate_fn=pad)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for points, lengths, letters in loader:
            loss = nn.functional.cross_entropy(model(points, lengths), letters)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
