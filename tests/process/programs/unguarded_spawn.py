"""Chooses spawn and has no main guard: it runs well without workers, and would run again inside each of any."""

import sys
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

mp.set_start_method("spawn")
torch.set_num_threads(1)
torch.manual_seed(0)


class Rows(Dataset):
    def __len__(self):
        return 4 * int(sys.argv[1])

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.ones(4)


model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for rows in DataLoader(Rows(), batch_size=4):
    loss = model(rows).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{loss.item():.5f}")
