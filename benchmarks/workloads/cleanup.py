"""Trains on sentences that are kept as Python objects, and cleans up after every step "to save memory"."""

import argparse
import gc
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = 5000


class Sentences(Dataset):
    """Sentences as JSON gives them: a dictionary each, with a list for each token."""

    def __init__(self, count):
        draw = random.Random(0)
        self.rows = [
            {
                "tokens": [{"id": draw.randrange(WORDS), "at": [at, at + 1]} for at in range(12)],
                "label": draw.randrange(2),
            }
            for _ in range(count)
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return torch.tensor([token["id"] for token in row["tokens"]]), row["label"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Sentences(args.sentences), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.EmbeddingBag(WORDS, 128), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(args.epochs):
        began = time.perf_counter()
        for tokens, labels in loader:
            loss = nn.functional.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del tokens, labels, loss
            gc.collect()  # the slow line
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
