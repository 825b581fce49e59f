"""Trains an autoencoder and remembers the error of every value in every step, to draw them at the end."""

import argparse

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(6400, 512))
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), 64, drop_last=False))
    model = nn.Sequential(nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 64), nn.Linear(64, 768), nn.Linear(768, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    errors = []
    for epoch in range(1, options.epochs + 1):
        for (batch,) in loader:
            error = (model(batch) - batch) ** 2
            loss = error.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append(error)
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    print(f"first error {errors[0].mean().item():.4f}, last {errors[-1].mean().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
