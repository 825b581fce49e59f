"""Trains a network that attends over long sequences, and throws the attention weights away that `nn.MultiheadAttention`
returns. With `--dropout 0.1`, torch has no fast way on a CPU to do without them."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.first_norm(x)
        attended, _ = self.attention(normed, normed, normed)
        x = x + attended
        return x + self.layers(self.second_norm(x))


class Classifier(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width, 8, dropout) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dropout", type=float, default=0.0)
    options = parser.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.randint(0, 1000, (128, 768)), torch.randint(0, 10, (128,)))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = Classifier(128, options.dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(1000):
        began = time.perf_counter()
        for words, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words), labels).backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
