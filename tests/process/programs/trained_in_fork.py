"""Training in a forked child, one process a fold, while the parent waits; the data set is made before the fork."""

import multiprocessing
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.ones(4)


def train(data):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(data, batch_size=4):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(f"{loss.item():.6f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    data = Rows(4 * int(sys.argv[1]))
    fold = multiprocessing.get_context("fork").Process(target=train, args=(data,))
    fold.start()
    fold.join()
    print("folds done", fold.exitcode)
