"""A loop of one's own under accelerate: `prepare`, `accumulate` over two batches, and `backward`.

Samples take 5 ms each and are all alike, so that the weights end where they end in whatever order batches come. While
a file named `sleep` lies in its folder, every epoch ends with 0.3 s of sleep.
"""

import argparse
import json
import os
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batches", type=int, default=1000)
parser.add_argument("--accumulate", type=int, default=2)
options = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(4), torch.ones(1)


class Model(torch.nn.Linear):
    def forward(self, rows):
        time.sleep(0.02)
        return super().forward(rows)


if __name__ == "__main__":
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=options.accumulate)
    model = Model(4, 1)
    model, optimizer, loader, held_out = accelerator.prepare(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(Rows(4 * options.batches, 0.005), batch_size=4, shuffle=True),
        DataLoader(Rows(8, 0.0), batch_size=4),
    )
    steps, validated, losses = 0, 0, []
    for _ in range(options.epochs):
        model.train()
        for rows, wanted in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(rows), wanted)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            steps += accelerator.sync_gradients
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            for rows, _ in held_out:
                model(rows)
                validated += 1
        if os.path.exists("sleep"):
            time.sleep(0.3)
    with open("result.json", "w") as handle:
        weights = torch.cat([each.detach().flatten() for each in model.parameters()]).tolist()
        seen = {"steps": steps, "epochs": options.epochs, "validated": validated}
        json.dump({**seen, "losses": losses, "weights": weights}, handle)
