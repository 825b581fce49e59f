"""Trains a classifier of texts that the loader's workers cut into pieces of words, in Python."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    """Texts of random words; a sample is the numbers of the longest known pieces that a text is made of."""

    def __init__(self, count, pieces):
        generator = random.Random(0)
        letters = "abcdefghij"
        self.pieces = {letter: number for number, letter in enumerate(letters)}
        while len(self.pieces) < pieces:
            piece = "".join(generator.choices(letters, k=generator.randrange(2, 7)))
            self.pieces.setdefault(piece, len(self.pieces))
        self.texts = ["".join(generator.choices(letters, k=1200)) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def cut(self, text):
        numbers, start = [], 0
        while start < len(text):
            for end in range(min(len(text), start + 7), start, -1):
                number = self.pieces.get(text[start:end])  # the slow line
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
        return numbers

    def __getitem__(self, index):
        numbers = self.cut(self.texts[index])  # the slow line
        return torch.tensor(numbers[:256] + [0] * (256 - len(numbers[:256]))), index % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Texts(8000, 3000), batch_size=32, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.EmbeddingBag(3000, 16), nn.Linear(16, 2))
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
