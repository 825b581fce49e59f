"""Trains a classifier of sentences, all of which are padded to the longest that there may be."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LONGEST = 256


class Sentences(Dataset):
    """Numbers of words, and a mask that says which of them are some."""

    def __init__(self, count, shortest, longest):
        generator = torch.Generator().manual_seed(0)
        self.lengths = torch.randint(shortest, longest + 1, (count,), generator=generator)
        self.words = torch.randint(1, 1000, (count, LONGEST), generator=generator)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        mask = (torch.arange(LONGEST) < self.lengths[index]).long()
        numbers = self.words[index] * mask
        return {"input_ids": numbers, "attention_mask": mask, "labels": numbers[0] % 2}


class Classifier(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words = nn.Embedding(1000, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.answer = nn.Linear(width, 2)

    def forward(self, numbers, mask):
        hidden = self.layers(self.words(numbers), src_key_padding_mask=mask == 0)
        return self.answer(hidden[:, 0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--shortest", type=int, default=8)
    parser.add_argument("--longest", type=int, default=48)
    options = parser.parse_args()

    torch.manual_seed(0)
    sentences = Sentences(4000, options.shortest, options.longest)
    loader = DataLoader(sentences, batch_size=16, shuffle=True)  # the slow line
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for batch in loader:
            answers = model(batch["input_ids"], batch["attention_mask"])
            loss = nn.functional.cross_entropy(answers, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
