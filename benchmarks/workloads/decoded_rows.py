"""Trains a small network on pictures of the library `datasets`, which are decoded whenever a batch is read, and then
cropped and flipped at random by the function that was given to `with_transform`."""

import time

import numpy as np
import torch
from datasets import Dataset, Features, Image, Value
from PIL import Image as Picture
from torch import nn
from torch.utils.data import DataLoader
from torchvision.transforms import v2


def examples():
    random = np.random.default_rng(0)
    for index in range(800):
        coarse = Picture.fromarray(random.integers(0, 256, (24, 24, 3), dtype=np.uint8))
        yield {"image": coarse.resize((320, 320)), "label": index % 4}


def collate_fn(rows):
    pixels = torch.stack([row["pixel_values"] for row in rows])
    return {"pixel_values": pixels, "labels": torch.tensor([row["label"] for row in rows])}


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    transforms = v2.Compose(
        [
            v2.RandomResizedCrop(64),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
        ]
    )

    def preprocess(batch):
        batch["pixel_values"] = [transforms(image.convert("RGB")) for image in batch.pop("image")]
        return batch

    dataset = Dataset.from_generator(examples, features=Features({"image": Image(), "label": Value("int64")}))
    train_dataset = dataset.with_transform(preprocess)
    loader = DataLoader(train_dataset, batch_size=32, shuffle=True, collate_fn=collate_fn)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(1000):
        began = time.perf_counter()
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["pixel_values"].to(device)), batch["labels"].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{1000 * (time.perf_counter() - began) / len(loader):.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
