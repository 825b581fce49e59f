"""Training whose next revision may be slower: what `plant.py` beside it does is what changes between revisions.

python gated.py {data,workers,conv} [--epochs N]

`data`: 10 ms of loading and 5 ms of computing a step, both waited for. `workers`: 20 ms of loading shared by two
workers that the loop waits for. `conv`: a convolutional network that is bound by memory.
"""

import argparse
import time

import plant
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = {"data": 4, "workers": 4, "conv": 32}
BATCHES = 100


class Samples(Dataset):
    def __init__(self, kind):
        self.kind, self.seconds = kind, {"data": 0.0025, "workers": 0.005, "conv": 0.0}[kind]
        self.picture = torch.randn(3, 64, 64)

    def __len__(self):
        return BATCH[self.kind] * BATCHES

    def __getitem__(self, index):
        time.sleep(self.seconds)
        if index % BATCH[self.kind] == 0:
            plant.prepare()
        return (self.picture if self.kind == "conv" else torch.full((4,), float(index % 5))), index % 2


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.layers = nn.Linear(4, 2)
        if kind == "conv":
            self.layers = nn.Sequential(
                nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
            )  # fmt: skip

    def forward(self, inputs):
        if self.kind == "data":
            time.sleep(0.005)
        plant.compute()
        return self.layers(inputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(BATCH))
    parser.add_argument("--epochs", type=int, default=100_000)
    options = parser.parse_args()
    if options.kind != "conv":
        torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        Samples(options.kind), batch_size=BATCH[options.kind], num_workers=2 if options.kind == "workers" else 0
    )
    model = Model(options.kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        started = time.perf_counter()
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            plant.between()
        print(f"epoch {epoch} {time.perf_counter() - started:.4f} s", flush=True)


if __name__ == "__main__":
    main()
