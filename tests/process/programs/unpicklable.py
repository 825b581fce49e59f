"""A dataset that holds a lock and an open file, in a script that chooses forkserver: nothing of it pickles."""

import multiprocessing
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    def __init__(self, count):
        self.count = count
        self.lock = threading.Lock()
        self.file = open("letters.txt")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        with self.lock:
            self.file.seek(0)
            time.sleep(0.006)
            return torch.tensor([float(value) for value in self.file.read().split()])


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for rows in DataLoader(Archive(4 * batches), batch_size=4):
        loss = model(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")


if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    main(int(sys.argv[1]))
