"""Trains on sentences of very different lengths, which two workers write out as counts of pairs of letters."""

import argparse
import itertools
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LETTERS = "abcdefghijklmnopqrst"


class Sentences(Dataset):
    def __init__(self, count):
        generator = random.Random(0)
        self.sentences = [
            "".join(generator.choices(LETTERS, k=int(800 * generator.lognormvariate(0, 0.5)))) for _ in range(count)
        ]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        counts = [0] * len(LETTERS) ** 2
        sentence = self.sentences[index]
        for one, other in itertools.pairwise(sentence):
            counts[LETTERS.index(one) * len(LETTERS) + LETTERS.index(other)] += 1  # the slow line
        return torch.tensor(counts, dtype=torch.float32) / len(sentence), index % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Sentences(12800), batch_size=64, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(len(LETTERS) ** 2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for counts, labels in loader:
            loss = nn.functional.cross_entropy(model(counts), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
