"""Trains a small network on spectra: the singular values of a stretch of a recording that begins anywhere, which NumPy
finds in the workers. With one worker and `--size 640`, threads of its own are of use to it.

python spectra.py --num-workers 1 --size 640
"""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, count: int, size: int) -> None:
        self.recording = np.random.default_rng(0).standard_normal((8192, size))
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        begin = int(torch.randint(len(self.recording) - self.size, ()))
        stretch = self.recording[begin : begin + self.size]
        values = np.linalg.svd(stretch.T @ stretch, compute_uv=False)
        return torch.from_numpy(np.log1p(values)).float(), torch.tensor(float(stretch[0, 0]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--num-workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Spectra(2048, args.size), batch_size=16, shuffle=True, num_workers=args.num_workers)
    model = nn.Sequential(nn.Linear(args.size, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(1000):
        began = time.perf_counter()
        for spectra, targets in loader:
            loss = nn.functional.mse_loss(model(spectra.to(device)).squeeze(1), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
