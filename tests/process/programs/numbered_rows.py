"""A loader of numbers that makes its batches of rows it holds itself, as RecBole's do. Asked for its `dataset` from
outside, it answers with what holds the rows."""

import sys
import time

import torch
from torch.utils.data import DataLoader

asked_by_torch = False


class Rows:
    """Takes many numbers at once, and no single one."""

    def __init__(self, count):
        self.rows = torch.ones(count, 3)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, numbers):
        time.sleep(0.006 * len(numbers))
        return self.rows[torch.as_tensor(numbers)]


class Numbered(DataLoader):
    def __init__(self, rows, size):
        self.rows = rows
        super().__init__(list(range(len(rows))), batch_size=size, shuffle=True, collate_fn=self.taken)

    def taken(self, numbers):
        return self.rows[numbers]

    def __iter__(self):
        global asked_by_torch
        asked_by_torch = True
        iterator = super().__iter__()
        asked_by_torch = False
        return iterator

    def __getattribute__(self, name):
        if name == "dataset" and not asked_by_torch:
            name = "rows"
        return super().__getattribute__(name)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in Numbered(Rows(4 * batches), 4):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
