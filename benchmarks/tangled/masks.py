"""Trains a network to find blobs in large pictures, in a script that has grown: it draws each picture again for each
epoch, transforms pictures one by one, convolves tensors so large that memory for them is asked for at each step, keeps
debug switches on, and has a parameter group for each tensor."""

import argparse

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

SIZE = 160


class Blobs(Dataset):
    def __init__(self, count):
        self.count = count
        self.normalized = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = np.random.default_rng(index)
        rows, columns = np.mgrid[:SIZE, :SIZE]
        inside = np.zeros((SIZE, SIZE), dtype=bool)
        for row, column, size in generator.uniform((0, 0, 8), (SIZE, SIZE, 28), (6, 3)):
            inside |= np.hypot(rows - row, columns - column) < size
        grain = generator.integers(0, 96, (SIZE, SIZE, 3))
        picture = Image.fromarray((grain + 120 * inside[:, :, None]).astype(np.uint8))
        return self.normalized(picture), torch.from_numpy(inside).float()


def convolved(width, wider):
    return nn.Sequential(nn.Conv2d(width, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
    loader = DataLoader(Blobs(96), batch_size=8, shuffle=True, num_workers=1)
    model = nn.Sequential(
        convolved(3, 16), convolved(16, 24), nn.Dropout(0.1), convolved(24, 16), nn.Conv2d(16, 1, 1), nn.Flatten(1)
    )
    optimizer = torch.optim.AdamW([{"params": [each]} for each in model.parameters()], lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for pictures, inside in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(pictures), inside.flatten(1))
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
