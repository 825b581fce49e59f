"""Trains a wide network and keeps a checkpoint of every few steps."""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "wide-checkpoints")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--every", type=int, default=2, help="steps between checkpoints")
    options = parser.parse_args()

    options.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tokens = torch.randint(100000, (6400, 8))
    loader = DataLoader(TensorDataset(tokens, tokens[:, 0] % 2), batch_size=32, shuffle=True)
    embedding = nn.EmbeddingBag(100000, 32, sparse=True)
    head = nn.Linear(32, 2)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.1)
    step = 0
    for epoch in range(1, options.epochs + 1):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(head(embedding(batch)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % options.every == 0:
                state = {"step": step, "embedding": embedding.state_dict(), "head": head.state_dict()}
                torch.save(state, options.output / "last.pt")  # the slow line
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
