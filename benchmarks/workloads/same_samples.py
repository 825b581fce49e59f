"""Trains a small network on spectrograms that are worked out again for every epoch, and are the same each time; with
noise, they are others.

python same_samples.py --noise 0.1
"""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 16000
WIDTH = 512


class Sounds(Dataset):
    def __init__(self, count: int, noise: float) -> None:
        self.noise = noise
        self.pitches = np.random.default_rng(0).uniform(100, 4000, count)

    def __len__(self) -> int:
        return len(self.pitches)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        times = np.arange(LENGTH) / LENGTH
        sound = np.sin(2 * np.pi * self.pitches[index] * times)
        if self.noise:
            sound = sound + self.noise * np.random.standard_normal(LENGTH)
        frames = np.lib.stride_tricks.sliding_window_view(sound, WIDTH)[:: WIDTH // 4] * np.hanning(WIDTH)
        spectrum = np.log1p(np.abs(np.fft.rfft(frames, axis=1)))
        return torch.from_numpy(spectrum.astype(np.float32)), int(self.pitches[index] > 2000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--noise", type=float, default=0.0)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Sounds(args.count, args.noise), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(WIDTH // 2 + 1, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 2)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(200):
        began = time.perf_counter()
        for spectra, labels in loader:
            answers = model(spectra.to(device).transpose(1, 2))
            loss = nn.functional.cross_entropy(answers, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
