"""Trains a ResNet-18 on pictures that lie in memory as float32, and copies each batch to the device where it is used.

python pictures.py
python pictures.py --epochs 4 --edit pinned-memory --edit amp-bf16

Each `--edit` makes by hand the change that doctor's fix of that name asks for.
"""

import argparse
import contextlib
import time

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batches", type=int, default=40, help="of an epoch")
    parser.add_argument("--edit", action="append", default=[])
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    count = 128 * args.batches
    data = TensorDataset(torch.randn(count, 3, 128, 128), torch.randint(10, (count,)))
    pinned = "pinned-memory" in args.edit
    loader = DataLoader(data, batch_size=128, shuffle=True, num_workers=4, pin_memory=pinned, persistent_workers=True)
    model = torchvision.models.resnet18(num_classes=10).to(device)
    if "channels-last" in args.edit:
        model = model.to(memory_format=torch.channels_last)
    if "compile" in args.edit:
        model = torch.compile(model)
    torch.backends.cudnn.benchmark = "cudnn-benchmark" in args.edit
    fused = True if "fused-optimizer" in args.edit else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    mixed = "amp-bf16" in args.edit
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        total = torch.zeros((), device=device)
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            with torch.autocast("cuda", dtype=torch.bfloat16) if mixed else contextlib.nullcontext():
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / args.batches:.4f} {time.perf_counter() - started:.3f} s", flush=True)


if __name__ == "__main__":
    main()
