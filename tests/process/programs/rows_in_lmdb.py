"""Rows in an LMDB environment that is opened in the first `__getitem__`: it must not be opened twice in a process."""

import os
import sys
import time

import lmdb
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, path, count):
        self.path, self.count = path, count
        self.environment = None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.environment is None:
            self.environment = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        time.sleep(0.006)
        with self.environment.begin() as transaction:
            assert int(transaction.get(f"{index % 64:04d}".encode())) == index % 64
        return torch.ones(4)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if not os.path.exists("rows.lmdb"):
        with lmdb.open("rows.lmdb", map_size=1 << 20) as environment, environment.begin(write=True) as transaction:
            for number in range(64):
                transaction.put(f"{number:04d}".encode(), str(number).encode())
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for rows in DataLoader(Rows("rows.lmdb", 4 * batches), batch_size=4, shuffle=True):
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
