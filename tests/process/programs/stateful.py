"""torchdata's loader whose state can be saved in the middle of an epoch."""

import sys
import time

import torch
from torch.utils.data import Dataset
from torchdata.stateful_dataloader import StatefulDataLoader


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
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = StatefulDataLoader(Rows(4 * batches), batch_size=4, shuffle=True)
    for number, rows in enumerate(loader, start=1):
        loss = model(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(number, f"{loss.item():.6f}", sorted(loader.state_dict())[:1])


if __name__ == "__main__":
    main(int(sys.argv[1]))
