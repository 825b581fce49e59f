"""Trains a ranker on whole lists of results and works out, in every step, how well the list is ranked."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lists(Dataset):
    """Results of a search, and which of them were wanted. A sample is a whole list, and a batch."""

    def __init__(self, count, length):
        generator = torch.Generator().manual_seed(0)
        self.results = torch.randn(count, length, 32, generator=generator)
        noise = 0.5 * torch.randn(count, length, generator=generator)
        self.wanted = (self.results[:, :, :3].sum(2) + noise > 0).float()

    def __len__(self):
        return len(self.results)

    def __getitem__(self, index):
        return self.results[index], self.wanted[index]


def area_under_curve(scores, labels):
    """The share of pairs of a positive and a negative in which the positive is ranked higher."""
    positives = [score for place, score in enumerate(scores) if labels[place]]
    negatives = [score for place, score in enumerate(scores) if not labels[place]]
    higher = 0
    for positive in positives:
        for negative in negatives:
            higher += positive > negative  # the slow line
    return higher / max(1, len(positives) * len(negatives))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Lists(200, 1000), batch_size=None, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        areas = []
        for results, wanted in loader:
            scores = model(results).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(scores, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            areas.append(area_under_curve(scores.tolist(), wanted.tolist()))  # the slow line
        print(f"epoch {epoch} loss {loss.item():.4f} area {sum(areas) / len(areas):.3f}", flush=True)


if __name__ == "__main__":
    main()
