"""A loop of one's own under accelerate, whose loader holds one batch ahead."""

import sys
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.ones(4)


def main(batches):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(4, 1)
    model, optimizer, loader = accelerator.prepare(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(Rows(4 * batches), batch_size=4, shuffle=True),
    )
    for rows in loader:
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        time.sleep(0.006)
    accelerator.save_state("state")
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
