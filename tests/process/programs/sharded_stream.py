"""An iterable dataset that shares its records out among workers, batched by itself, until a number of steps."""

import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STEPS = int(sys.argv[1])


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, every = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, 10_000, every):
            time.sleep(0.024)
            yield torch.ones(4, 3) * (1 if number >= 0 else 0)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(Stream(), batch_size=None)
    for step, rows in enumerate(loader, start=1):
        loss = (model(rows) - 1).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
        if step % 16 == 0:
            print(step, f"{loss.item():.4f}")
        if step >= STEPS:
            break


if __name__ == "__main__":
    main()
