"""Trains a small classifier on chunks of a table and counts in every step how many of the chunk were right."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Chunks(Dataset):
    """Whole batches, cut from a table in memory."""

    def __init__(self, count, rows):
        generator = torch.Generator().manual_seed(0)
        self.table = torch.randn(count, rows, 16, generator=generator)
        self.labels = self.table[:, :, :4].argmax(2)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        return self.table[index], self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=4096)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Chunks(200, options.rows), batch_size=None, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, options.epochs + 1):
        correct = seen = 0
        for rows, labels in loader:
            output = model(rows)
            loss = nn.functional.cross_entropy(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            guesses = output.argmax(1)
            for index in range(len(labels)):
                correct += guesses[index].item() == labels[index].item()  # the slow line
            seen += len(labels)
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {correct / seen:.3f}", flush=True)


if __name__ == "__main__":
    main()
