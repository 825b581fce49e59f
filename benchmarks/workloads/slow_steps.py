"""Trains on recordings in a far archive, of which every one takes a sixth of a second to come: a step takes 2.7 s."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, count):
        self.recordings = torch.randn(count, 4096, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, index):
        time.sleep(0.165)
        shift = torch.randint(0, 64, ()).item()
        return self.recordings[index].roll(shift), index % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Recordings(3200), batch_size=16, shuffle=True, num_workers=options.num_workers)
    model = nn.Sequential(nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for recordings, labels in loader:
            loss = nn.functional.cross_entropy(model(recordings), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
