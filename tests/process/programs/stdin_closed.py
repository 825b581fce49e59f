"""A script started as a daemon would be: it closes its standard input, descriptor and all, before it trains."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

sys.stdin.close()
try:
    os.close(0)
except OSError:
    pass

torch.manual_seed(0)
torch.set_num_threads(1)


class Letters(Dataset):
    def __init__(self, path):
        # It gets descriptor 0, as whatever is opened next does.
        self.lines = open(path).read().splitlines()

    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.tensor([float(value) for value in self.lines[0].split()])


def main(batches):
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Letters("letters.txt"), batch_size=4, shuffle=True)
    taken = 0
    while taken < batches:
        for rows in loader:
            loss = model(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.006)
            taken += 1
            if taken == batches:
                break
    print(f"{loss.item():.6f}", sys.stdin.closed)


if __name__ == "__main__":
    main(int(sys.argv[1]))
