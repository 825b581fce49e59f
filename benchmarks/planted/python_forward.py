"""Trains a tree model whose forward pass decides in Python how the words of a sentence belong together."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def best_split(weights, start, end):
    """Where the halves of a span weigh most alike."""
    best, place = float("inf"), start + 1
    for middle in range(start + 1, end):
        difference = 0.0
        for index in range(start, end):
            difference += weights[index] if index < middle else -weights[index]  # the slow line
        if abs(difference) < best:
            best, place = abs(difference), middle
    return place


class Halves(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.out = nn.Linear(2 * width, 2)

    def forward(self, tokens):
        embedded = self.words(tokens)
        weights = embedded.detach().abs().sum(2).tolist()
        rows = []
        for number, row in enumerate(embedded):
            middle = best_split(weights[number], 0, row.shape[0])  # the slow line
            rows.append(torch.cat([row[:middle].mean(0), row[middle:].mean(0)]))
        return self.out(torch.stack(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    tokens = torch.randint(500, (3200, 160))
    loader = DataLoader(TensorDataset(tokens, tokens[:, 0] % 2), batch_size=32, shuffle=True)
    model = Halves(500, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
