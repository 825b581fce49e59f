"""Trains on labelled batches, and after every fourth on an unlabelled one, from a loader of its own."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(12800, 64)
    labelled = DataLoader(TensorDataset(inputs, inputs[:, :5].argmax(1)), batch_size=32, shuffle=True)
    unlabelled = DataLoader(TensorDataset(torch.randn(12800, 64)), batch_size=128, shuffle=True)
    others = iter(unlabelled)
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for step, (batch, labels) in enumerate(labelled):
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 4 == 3:
                other = next(others, None)
                if other is None:
                    others = iter(unlabelled)
                    other = next(others)
                noisy = other[0] + 0.1 * torch.randn_like(other[0])
                agreement = nn.functional.mse_loss(model(noisy), model(other[0]).detach())
                optimizer.zero_grad()
                agreement.backward()
                optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
