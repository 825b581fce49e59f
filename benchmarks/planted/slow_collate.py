"""Trains on sentences of different lengths, which are filled up to the longest of their batch."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    """Lists of numbers of words, and whether the first of them is even."""

    def __init__(self, count, words):
        generator = random.Random(0)
        self.sentences = [
            [generator.randrange(1, words) for _ in range(generator.randrange(100, 400))] for _ in range(count)
        ]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        sentence = self.sentences[index]
        return sentence, sentence[0] % 2


def fill_up(samples):
    """Sentences as the rows of one tensor, with zeros at their ends."""
    longest = max(len(sentence) for sentence, _ in samples)
    tokens = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (sentence, _) in enumerate(samples):
        for place, word in enumerate(sentence):
            tokens[row, place] = word  # the slow line
    return tokens, torch.tensor([label for _, label in samples])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        Sentences(12800, 2000), batch_size=64, shuffle=True, collate_fn=fill_up, num_workers=options.num_workers
    )
    model = nn.Sequential(nn.EmbeddingBag(2000, 4, padding_idx=0), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for tokens, labels in loader:
            loss = nn.functional.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
