"""Trains a small transformer on texts of very different lengths, each batch padded to its longest one. Every layer is
checkpointed, though there is memory for all of them.

python padded_texts.py
"""

import argparse
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

WORDS = 1000
PADDING = 0


class Texts(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.empty(count).log_normal_(4.3, 0.7, generator=generator).clamp(10, 400).long()
        self.texts = [torch.randint(1, WORDS, (int(length),), generator=generator) for length in lengths]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index]


def padded(texts):
    rows = pad_sequence(texts, batch_first=True, padding_value=PADDING)
    return {"input_ids": rows, "attention_mask": (rows != PADDING).long()}


class Writer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PADDING)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(3)
        )
        self.out = nn.Linear(width, WORDS)

    def forward(self, input_ids, attention_mask):
        rows = self.words(input_ids)
        mask = nn.Transformer.generate_square_subsequent_mask(input_ids.shape[1])
        padding = torch.zeros(attention_mask.shape).masked_fill(attention_mask == 0, float("-inf"))
        for layer in self.layers:
            rows = checkpoint(layer, rows, mask, padding, use_reentrant=False)
        return self.out(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Texts(8000), batch_size=8, shuffle=True, collate_fn=padded)
    model = Writer(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(args.epochs):
        began = time.perf_counter()
        for batch in loader:
            rows = model(**batch)
            wanted = batch["input_ids"][:, 1:]
            loss = nn.functional.cross_entropy(rows[:, :-1].flatten(0, 1), wanted.flatten(), ignore_index=PADDING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
