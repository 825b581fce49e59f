"""Trains a model on a vocabulary that is kept as Python objects, and cleans up after each epoch."""

import argparse
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--words", type=int, default=300000)
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()

    torch.manual_seed(0)
    vocabulary = {f"word {number}": [number, {"times": number % 7}] for number in range(options.words)}
    inputs = torch.randint(0, options.words, (options.rows, 16))
    targets = (inputs % 7).float().mean(1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.EmbeddingBag(1024, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        for rows, wanted in loader:
            loss = nn.functional.mse_loss(model(rows % 1024).squeeze(1), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        gc.collect()
        print(f"epoch {epoch} loss {loss.item():.4f} with {len(vocabulary)} words", flush=True)


if __name__ == "__main__":
    main()
