"""Trains on volumes of a scanner. Batches are made in workers and stay NumPy arrays until they are needed."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    """Cubes cut out of one large scan: 8 MB each."""

    def __init__(self, count, side):
        self.scan = np.random.default_rng(0).random((side, side, side + count), dtype=np.float32)
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.scan[:, :, index : index + self.side]


def as_arrays(samples):
    return np.stack(samples)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(
        Volumes(480, 128), batch_size=16, shuffle=True, collate_fn=as_arrays, num_workers=options.num_workers
    )
    model = nn.Linear(128, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for arrays in loader:
            middle = torch.from_numpy(arrays[:, 64, 64])
            loss = nn.functional.mse_loss(model(middle).squeeze(1), middle[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
