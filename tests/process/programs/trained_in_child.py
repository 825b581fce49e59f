"""Training in a spawned child, as `torch.multiprocessing.spawn` starts it; the parent only waits."""

import sys
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.ones(4)


def train(rank, batches):
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Rows(4 * batches), batch_size=4):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(f"rank {rank}: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=1)
    print("done")
