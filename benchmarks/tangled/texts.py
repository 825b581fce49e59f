"""Trains a transformer on texts, in a script that has grown: it splits each text into words again for each epoch, pads
all rows to the longest text there is, checkpoints layers that fit into memory, computes attention step by step, keeps
anomaly detection on, and has a parameter group for each tensor."""

import argparse
import math
import re

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

WORDS = 2000
LONGEST = 256
PADDING = 0


class Texts(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.empty(count).log_normal_(3.6, 0.6, generator=generator).clamp(8, LONGEST).long()
        lengths[0] = LONGEST
        drawn = [torch.randint(1, WORDS, (int(length),), generator=generator).tolist() for length in lengths]
        self.texts = [" ".join(f"w{word}," for word in text) for text in drawn]
        self.places = {f"w{word}": word for word in range(WORDS)}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        words = re.findall(r"[a-z]+\d+", self.texts[index].lower())
        row = torch.full((LONGEST,), PADDING)
        row[: len(words)] = torch.tensor([self.places[word] for word in words])
        return {"input_ids": row, "attention_mask": (row != PADDING).long()}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, rows, mask):
        batch, length, width = rows.shape
        shape = (batch, length, self.heads, width // self.heads)
        queries = self.queries(rows).view(shape).transpose(1, 2)
        keys = self.keys(rows).view(shape).transpose(1, 2)
        values = self.values(rows).view(shape).transpose(1, 2)
        scores = torch.matmul(queries, keys.transpose(-2, -1)) / math.sqrt(queries.size(-1))
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        made = torch.matmul(self.dropout(weights), values)
        return self.out(made.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width, 4)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, rows, mask):
        rows = rows + self.attention(self.first(rows), mask)
        return rows + self.inner(self.second(rows))


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PADDING)
        self.layers = nn.ModuleList(Layer(width) for _ in range(3))
        self.out = nn.Linear(width, WORDS)

    def forward(self, input_ids, attention_mask):
        rows = self.words(input_ids)
        for layer in self.layers:
            rows = checkpoint(layer, rows, attention_mask, use_reentrant=False)
        return self.out(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    loader = DataLoader(Texts(4096), batch_size=8, shuffle=True)
    model = Reader(96)
    optimizer = torch.optim.Adam([{"params": [each]} for each in model.parameters()], lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for step, batch in enumerate(loader):
            said = model(batch["input_ids"], batch["attention_mask"])
            loss = nn.functional.cross_entropy(said.flatten(0, 1), batch["input_ids"].flatten(), ignore_index=PADDING)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
