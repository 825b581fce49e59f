"""No main guard, no function: the loop stands at module level, as in most first scripts."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("-o", "--output", default="out")
parser.add_argument("--budget", type=float)
parser.add_argument("--only", nargs="*")
parser.add_argument("-q", "--quiet", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)


class Letters(Dataset):
    def __init__(self, path):
        with open(path) as lines:
            self.lines = lines.read().splitlines()

    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.tensor([float(value) for value in self.lines[0].split()]), torch.ones(1)


class Net(torch.nn.Sequential):
    def forward(self, rows):
        time.sleep(0.006)
        return super().forward(rows)


model = Net(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Letters("letters.txt"), batch_size=4, shuffle=True)

for epoch in range(args.epochs):
    total = 0.0
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print("budget", args.budget, "only", args.only, "output", args.output, "quiet", args.quiet)
