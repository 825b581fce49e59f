"""Trains a classifier of log lines, which a regular expression cuts into words whenever one is asked for."""

import argparse
import random
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORD = re.compile(r"[a-z]+(?:-[a-z]+)*|\d+(?:\.\d+)?|[^\s\w]", re.IGNORECASE)
WORDS = ("error", "warning", "disk", "retry-after", "user", "session", "closed", "opened", "lost", "found", "late")


class LogLines(Dataset):
    """Blocks of lines, and whether an error is among the first words."""

    def __init__(self, count, length):
        generator = random.Random(0)
        lines = [f"{generator.choice(WORDS)} {generator.randrange(1000) / 10}," for _ in range(10 * length)]
        starts = [generator.randrange(9 * length) for _ in range(count)]
        self.blocks = [" ".join(lines[start : start + generator.randrange(length)]) for start in starts]
        self.numbers = {word: number for number, word in enumerate(WORDS, 2)}

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, index):
        words = WORD.findall(self.blocks[index].lower())  # the slow line
        numbers = [self.numbers.get(word, 1) for word in words[:128]]
        return torch.tensor(numbers + [0] * (128 - len(numbers))), int(2 in numbers[:32])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(LogLines(3200, 5000), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.EmbeddingBag(len(WORDS) + 2, 16, padding_idx=0), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for numbers, labels in loader:
            loss = nn.functional.cross_entropy(model(numbers), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
