"""Trains a network on records of a far store; one worker fetches them while the network computes."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    """A record takes the store three milliseconds."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.records = torch.randn(count, 512, generator=generator)

    def __len__(self):
        return 8 * len(self.records)

    def __getitem__(self, index):
        time.sleep(0.003)
        record = self.records[index % len(self.records)]
        return record, record[:6].argmax()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(
        Records(1600), batch_size=8, shuffle=True, num_workers=options.num_workers, persistent_workers=True
    )
    model = nn.Sequential(nn.Unflatten(1, (8, 8, 8)), nn.Conv2d(8, 256, 3, padding=1), nn.ReLU())
    model.extend([nn.Conv2d(256, 512, 5, padding=2), nn.ReLU(), nn.Conv2d(512, 256, 3, padding=1), nn.ReLU()])
    model.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for records, labels in loader:
            loss = nn.functional.cross_entropy(model(records), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
