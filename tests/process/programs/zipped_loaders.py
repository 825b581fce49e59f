"""Labelled and unlabelled batches side by side, from two loaders that are zipped."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(3)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    labelled = DataLoader(Slow(4 * batches, 0.006), batch_size=4, shuffle=True)
    unlabelled = DataLoader(Slow(8 * batches, 0.0005), batch_size=8, shuffle=True)
    for known, unknown in zip(labelled, unlabelled):
        optimizer.zero_grad()
        loss = model(known).square().mean() + 0.1 * model(unknown).std()
        loss.backward()
        optimizer.step()
        time.sleep(0.004)
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
