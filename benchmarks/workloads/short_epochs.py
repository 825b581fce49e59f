"""Trains a small network on few JPEG pictures, kept encoded in memory: many short epochs.

python short_epochs.py --num-workers 1
"""

import argparse
import io
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Encoded pictures of random blobs; each is decoded, cropped and flipped when it is asked for."""

    def __init__(self, count, classes, seed):
        generator = np.random.default_rng(seed)
        self.items = []
        for _ in range(count):
            label = int(generator.integers(classes))
            cells = generator.integers(0, 255, (4 + 2 * label, 4 + 2 * label, 3), dtype=np.uint8)
            picture = Image.fromarray(cells).resize((480, 360), Image.Resampling.BICUBIC)
            file = io.BytesIO()
            picture.save(file, format="JPEG", quality=90)
            self.items.append((file.getvalue(), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        data, label = self.items[index]
        picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        top, left = np.random.randint(360 - 288), np.random.randint(480 - 288)
        crop = picture[top : top + 288, left : left + 288]
        if np.random.rand() < 0.5:
            crop = crop[:, ::-1]
        image = torch.from_numpy(crop[::4, ::4].astype(np.float32) / 127.5 - 1)
        return image.permute(2, 0, 1), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--persistent-workers", action="store_true")
    parser.add_argument("--threads", type=int, default=1, help="so small a network gains nothing from more")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    loader = DataLoader(
        Pictures(args.pictures, args.classes, args.seed),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        persistent_workers=args.persistent_workers,
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, args.classes),
    ).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(1, args.epochs + 1):
        total = 0.0
        started = time.perf_counter()
        for images, labels in loader:
            output = model(images.to(device))
            loss = criterion(output, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} {time.perf_counter() - started:.3f} s", flush=True)


if __name__ == "__main__":
    main()
