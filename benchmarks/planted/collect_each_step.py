"""Trains a model of words with a large vocabulary held in memory, and tidies up after every step."""

import argparse
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Word:
    def __init__(self, number):
        self.text = f"word{number}"
        self.neighbours = [number - 1, number + 1]
        self.counts = {number: 1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--words", type=int, default=300000)
    options = parser.parse_args()

    torch.manual_seed(0)
    vocabulary = [Word(number) for number in range(options.words)]
    tokens = torch.randint(1000, (6400, 12))
    loader = DataLoader(TensorDataset(tokens, tokens[:, 0] % 5), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Embedding(1000, 32), nn.Flatten(), nn.Linear(384, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            gc.collect()  # the slow line
        print(f"epoch {epoch} loss {loss.item():.4f}, {len(vocabulary)} words", flush=True)


if __name__ == "__main__":
    main()
