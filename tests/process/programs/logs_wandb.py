"""A wandb run: a process of wandb's own writes its files."""

import sys
import time

import torch
import wandb
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
    torch.manual_seed(0)
    torch.set_num_threads(1)
    run = wandb.init(project="rows", config={"lr": 0.01})
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, rows in enumerate(DataLoader(Rows(4 * batches), batch_size=4, shuffle=True)):
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
        if step % 10 == 0:
            run.log({"loss": loss.item()}, step=step)
    run.finish()
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
