"""Trains a network whose attention is two products with a softmax between them, as papers write it."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.outputs = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inputs(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(width // self.heads)
        weights = scores.softmax(dim=-1)  # the slow line
        return self.outputs((weights @ values).transpose(1, 2).reshape(batch, length, width))


class Classifier(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.attention = nn.ModuleList(Attention(width, 8) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, 2)

    def forward(self, words):
        x = self.words(words)
        for norm, attention in zip(self.norms, self.attention, strict=True):
            x = x + attention(norm(x))
        return self.head(x.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    words = torch.randint(500, (1600, 256))
    loader = DataLoader(TensorDataset(words, words[:, 0] % 2), batch_size=8, shuffle=True)
    model = Classifier(500, 128)
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
