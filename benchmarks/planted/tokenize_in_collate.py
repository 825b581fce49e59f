"""Trains a classifier of reviews, which are cut into words and numbered when a batch is put together."""

import argparse
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

SIGNS = str.maketrans({sign: f" {sign} " for sign in ".,;!?"})


class Reviews(Dataset):
    """Texts as they were written, and their number of stars."""

    def __init__(self, count, words):
        generator = random.Random(0)
        names = ["".join(generator.choices("abcdefghij", k=generator.randrange(2, 9))) for _ in range(words)]
        self.names = sorted(set(names))
        written = [generator.choice(self.names) + generator.choice(["", "", ",", "."]) for _ in range(20_000)]
        starts = [generator.randrange(18_000) for _ in range(count)]
        self.texts = [" ".join(written[start : start + generator.randrange(300, 2000)]) for start in starts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], index % 5


class Tokenizer:
    """Makes a batch of texts one tensor of the numbers of their words."""

    def __init__(self, names):
        self.numbers = {name: number for number, name in enumerate(names, 1)}

    def cut(self, text):
        return [self.numbers.get(word, 0) for word in text.lower().translate(SIGNS).split()]  # the slow line

    def __call__(self, samples):
        rows = [torch.tensor(self.cut(text)[:256]) for text, _ in samples]  # the slow line
        return pad_sequence(rows, batch_first=True), torch.tensor([stars for _, stars in samples])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    reviews = Reviews(3200, 3000)
    loader = DataLoader(reviews, batch_size=32, shuffle=True, collate_fn=Tokenizer(reviews.names))
    model = nn.Sequential(nn.EmbeddingBag(len(reviews.names) + 1, 16, padding_idx=0), nn.Linear(16, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for words, stars in loader:
            loss = nn.functional.cross_entropy(model(words), stars)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
