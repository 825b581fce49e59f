"""Trains on spectra that lie packed in memory, since there are many; each is unpacked when it is asked for."""

import argparse
import lzma

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, kinds, count, length):
        generator = np.random.default_rng(0)
        self.count, self.length = count, length
        spectra = (np.cumsum(generator.integers(-3, 4, length), dtype=np.int16) for _ in range(kinds))
        self.packed = [lzma.compress(spectrum.tobytes(), preset=1) for spectrum in spectra]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        unpacked = lzma.decompress(self.packed[index % len(self.packed)])  # the slow line
        spectrum = torch.frombuffer(bytearray(unpacked), dtype=torch.int16)
        return spectrum[:: self.length // 512].float() / 100, index % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Spectra(100, 1600, 32768), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for spectra, kinds in loader:
            loss = nn.functional.cross_entropy(model(spectra), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
