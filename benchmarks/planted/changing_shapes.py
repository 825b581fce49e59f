"""Trains a small recurrent reader on rows of many lengths, compiled without shapes that may change."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(512, 128)
        self.inner = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.head = nn.Linear(512, 4)

    def forward(self, rows):  # the slow line
        return self.head(self.inner(self.words(rows)).mean(1))


def shortened(batch):
    rows, labels = zip(*batch, strict=True)
    longest = 40 + int(rows[0][0]) % 60
    return torch.stack(rows)[:, :longest], torch.stack(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    rows, labels = torch.randint(512, (4096, 100)), torch.randint(4, (4096,))
    loader = DataLoader(TensorDataset(rows, labels), batch_size=32, shuffle=True, collate_fn=shortened)
    model = Reader()
    fast = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, options.epochs + 1):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(fast(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
