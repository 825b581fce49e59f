"""Trains a small network on sounds that two workers fetch from a far store, one in `--every` of them `--times` as long
as the others, and so as long on its way.

python uneven_batches.py --times 40
"""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH = 512
SECONDS = 2e-5
"""A frame is so long on its way."""


class Sounds(Dataset):
    def __init__(self, count: int, every: int, times: int) -> None:
        generator = np.random.default_rng(0)
        self.pitches = generator.uniform(100, 4000, count)
        self.frames = np.where(np.arange(count) % every == 0, 60 * times, 60)

    def __len__(self) -> int:
        return len(self.pitches)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(SECONDS * int(self.frames[index]))
        at = np.arange(WIDTH * 60) / 16000  # Its first seconds will do.
        sound = np.sin(2 * np.pi * self.pitches[index] * at) + 0.1 * np.random.standard_normal(len(at))
        spectra = np.abs(np.fft.rfft(sound.reshape(-1, WIDTH) * np.hanning(WIDTH), axis=1))
        return torch.from_numpy(np.log1p(spectra.mean(axis=0)).astype(np.float32)), int(self.pitches[index] > 2000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--every", type=int, default=40)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--num-workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sounds = Sounds(args.count, args.every, args.times)
    loader = DataLoader(sounds, batch_size=4, shuffle=True, num_workers=args.num_workers)
    model = nn.Sequential(nn.Linear(WIDTH // 2 + 1, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(200):
        began = time.perf_counter()
        for spectra, labels in loader:
            loss = nn.functional.cross_entropy(model(spectra.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.2f} ms a step", flush=True)


if __name__ == "__main__":
    main()
