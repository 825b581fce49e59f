"""Gradients scaled and accumulated over four batches; a schedule that raises when it is stepped once too often."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

ACCUMULATE = 4


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.012)
        return torch.ones(8), torch.zeros(1)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        total = sum(torch.nn.functional.l1_loss(model(rows), wanted).item() for rows, wanted in loader)
    model.train()
    return total / len(loader)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=batches // ACCUMULATE)
    loader = DataLoader(Rows(2 * batches), batch_size=2)
    held_out = DataLoader(Rows(8), batch_size=4)
    print(f"before {evaluate(model, held_out):.4f}")
    for number, (rows, wanted) in enumerate(loader, start=1):
        loss = torch.nn.functional.mse_loss(model(rows), wanted) / ACCUMULATE
        scaler.scale(loss).backward()
        if number % ACCUMULATE == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
        if number % 40 == 0:
            print(f"{number} {evaluate(model, held_out):.4f} {schedule.get_last_lr()[0]:.5f}")
    print(f"after {evaluate(model, held_out):.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
