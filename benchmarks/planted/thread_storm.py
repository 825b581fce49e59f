"""Trains a regression on spectral features: each sample is a matrix whose singular values NumPy finds in a worker."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    """The singular values of windows cut from one long recording of many channels."""

    def __init__(self, count, size):
        self.recording = np.random.default_rng(0).standard_normal((count + size, size))
        self.size = size

    def __len__(self):
        return len(self.recording) - self.size

    def __getitem__(self, index):
        window = self.recording[index : index + self.size]
        covariance = window.T @ window
        values = np.linalg.svd(covariance, compute_uv=False)
        return torch.from_numpy(np.log1p(values)).float(), torch.tensor(float(window[0, 0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=4)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Spectra(4000, 160), batch_size=8, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(160, 64), nn.ReLU(), nn.Linear(64, 1))
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
