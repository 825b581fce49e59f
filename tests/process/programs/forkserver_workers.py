"""Workers from a fork server, in a subclass of DataLoader with a batch sampler of its own."""

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


class Buckets:
    """Batches of four neighbours, the far end first."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count // 4

    def __iter__(self):
        for first in range(self.count - 4, -1, -4):
            yield [first, first + 1, first + 2, first + 3]


class CountingLoader(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.epochs_begun = 0

    def __iter__(self):
        self.epochs_begun += 1
        return super().__iter__()


def main(epochs, rows, workers):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    context = "forkserver" if workers else None
    loader = CountingLoader(
        Rows(rows), batch_sampler=Buckets(rows), num_workers=workers, multiprocessing_context=context
    )
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.006)
    print(f"{loss.item():.6f} after {loader.epochs_begun} epochs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
