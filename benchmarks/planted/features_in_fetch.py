"""Trains on features of signals, which are worked out from the signal whenever a sample is asked for."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    """Signals in memory. A sample is the lag-by-lag likeness of a signal with itself."""

    def __init__(self, count, length):
        self.signals = np.random.default_rng(0).standard_normal((count, length)).astype(np.float32)

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        signal = self.signals[index]
        likeness = np.correlate(signal, signal, mode="same")  # the slow line
        return torch.from_numpy(likeness[:256].copy()), torch.tensor(float(signal[0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Signals(1600, 8000), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for features, targets in loader:
            loss = nn.functional.mse_loss(model(features).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
