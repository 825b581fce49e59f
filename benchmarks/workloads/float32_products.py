"""Trains a small transformer on made-up sentences in float32: nearly all of a step is products of matrices.

python float32_products.py --steps 200
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    """Foretells the next of 512 words."""

    def __init__(self, width, layers):
        super().__init__()
        self.words = nn.Embedding(512, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.next = nn.Linear(width, 512)

    def forward(self, words):
        later = nn.Transformer.generate_square_subsequent_mask(words.shape[1], device=words.device)
        return self.next(self.layers(self.words(words), mask=later, is_causal=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=0, help="end each epoch after this many steps")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    starts, strides = torch.randint(0, 512, (2048, 1)), torch.randint(1, 8, (2048, 1))
    data = TensorDataset((starts + strides * torch.arange(257)) % 512)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = Reader(args.width, args.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(1000):
        began = time.perf_counter()
        for step, (words,) in enumerate(loader, 1):
            words = words.to(device)
            logits = model(words[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == args.steps:
                break
        print(f"{1000 * (time.perf_counter() - began) / step:.0f} ms a step, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
