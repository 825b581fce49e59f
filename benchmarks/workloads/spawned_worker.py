"""Trains on answers of a slow service, which one worker asks for. It is spawned, since the client can't be forked."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Answers(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.randn(256) + index % 2, index % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--num-workers", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(
        Answers(16000), batch_size=16, shuffle=True, num_workers=options.num_workers, multiprocessing_context="spawn"
    )
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        for answers, labels in loader:
            loss = nn.functional.cross_entropy(model(answers), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
