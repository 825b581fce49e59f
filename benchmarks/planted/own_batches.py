"""Trains a small language model; a function of its own cuts random pieces of text and makes a batch of them."""

import argparse
import random

import torch
from torch import nn

LENGTH = 64


class Model(nn.Module):
    def __init__(self, letters, width):
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, letters))

    def forward(self, tokens):
        return self.layers(self.embedding(tokens))


def get_batch(text, numbers, size):
    """Pieces of the text and what follows each of their letters."""
    inputs, targets = [], []
    for _ in range(size):
        start = random.randrange(len(text) - LENGTH - 1)
        piece = text[start : start + LENGTH + 1]
        encoded = torch.stack([torch.tensor(numbers[letter]) for letter in piece])  # the slow line
        inputs.append(encoded[:-1])
        targets.append(encoded[1:])
    return torch.stack(inputs), torch.stack(targets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    letters = "abcdefghijklmnopqrstuvwxyz .,"
    numbers = {letter: number for number, letter in enumerate(letters)}
    text = "".join(random.choices(letters, k=200_000))
    model = Model(len(letters), 32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for iteration in range(1, options.iterations + 1):
        inputs, targets = get_batch(text, numbers, options.batch_size)  # the slow line
        output = model(inputs)
        loss = nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 200 == 0:
            print(f"iteration {iteration} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
