"""Trains a small GPT that writes its attention out, in float32.

python words.py
python words.py --epochs 4 --edit amp-bf16 --edit fused-attention

Each `--edit` makes by hand the change that doctor's fix of that name asks for.
"""

import argparse
import contextlib
import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 512, 8, 6, 512, 32


class Rows(Dataset):
    """Every row is `LENGTH` letters of one long text, and the letters that follow them."""

    def __init__(self, count):
        self.text, self.count = torch.randint(64, (count * 16 + LENGTH + 1,)), count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = self.text[index * 16 : index * 16 + LENGTH + 1]
        return row[:-1], row[1:]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            each.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for each in self.project(x).split(WIDTH, 2)
        )
        weights = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        weights = weights.masked_fill(~self.mask[:length, :length], float("-inf"))
        weights = functional.softmax(weights, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class FusedAttention(Attention):
    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            each.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for each in self.project(x).split(WIDTH, 2)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention()
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.wide(self.second(x))


class Model(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.words, self.places = nn.Embedding(64, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(attention) for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, 64)

    def forward(self, rows):
        places = torch.arange(rows.shape[1], device=rows.device)
        return self.head(self.blocks(self.words(rows) + self.places(places)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batches", type=int, default=40, help="of an epoch")
    parser.add_argument("--edit", action="append", default=[])
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    if "float32-precision" in args.edit:
        torch.set_float32_matmul_precision("high")
    loader = DataLoader(Rows(BATCH * args.batches), batch_size=BATCH, shuffle=True)
    model = Model(FusedAttention if "fused-attention" in args.edit else Attention).to(device)
    if "compile" in args.edit:
        model = torch.compile(model)
    fused = True if "fused-optimizer" in args.edit else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=fused)
    mixed = "amp-bf16" in args.edit
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        losses = []
        for rows, following in loader:
            rows, following = rows.to(device), following.to(device)
            with torch.autocast("cuda", dtype=torch.bfloat16) if mixed else contextlib.nullcontext():
                loss = functional.cross_entropy(model(rows).flatten(0, 1), following.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {losses[-1]:.4f} {time.perf_counter() - started:.3f} s", flush=True)


if __name__ == "__main__":
    main()
