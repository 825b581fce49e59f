"""Trains a small residual network on a folder of pet photos.

python train.py config.json
"""

import json
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from photos import make_photos
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.transforms import InterpolationMode

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Pets(Dataset):
    """Photos in one folder per class. Every sixth photo of a class is held out for evaluation."""

    def __init__(self, root, train, transform):
        self.transform = transform
        self.samples = []
        self.classes = sorted(folder.name for folder in Path(root).iterdir() if folder.is_dir())
        for label, name in enumerate(self.classes):
            for number, path in enumerate(sorted((Path(root) / name).glob("*.jpg"))):
                if (number % 6 != 0) == train:
                    self.samples.append((path, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        image = Image.open(path).convert("RGB")
        return self.transform(image), label


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class PetNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 5, 4, 2, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        self.blocks = nn.Sequential(Block(24, 48, 2), Block(48, 96, 2), Block(96, 192, 2))
        self.head = nn.Linear(192, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean(dim=(2, 3)))


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_loaders(config, root):
    train_transform = transforms.Compose(
        [
            transforms.RandomRotation(10, interpolation=InterpolationMode.BILINEAR),
            transforms.RandomResizedCrop(config["image_size"], scale=(0.5, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(brightness=0.3, contrast=0.3, saturation=0.3, hue=0.05),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    test_transform = transforms.Compose(
        [
            transforms.Resize(config["image_size"]),
            transforms.CenterCrop(config["image_size"]),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    train_loader = DataLoader(
        Pets(root, train=True, transform=train_transform),
        batch_size=config["batch_size"],
        shuffle=True,
        num_workers=config["workers"],
        drop_last=True,
    )
    test_loader = DataLoader(Pets(root, train=False, transform=test_transform), batch_size=config["batch_size"])
    return train_loader, test_loader


def train_epoch(model, loader, criterion, optimizer, device, epoch, log):
    model.train()
    for step, (images, labels) in enumerate(loader):
        images = images.to(device)
        labels = labels.to(device)
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        accuracy = (logits.argmax(dim=1) == labels).float().mean().item()
        print(f"epoch {epoch} step {step + 1}/{len(loader)} loss {loss.item():.4f} accuracy {accuracy:.2f}", file=log)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        predictions = model(images.to(device)).argmax(dim=1)
        correct += (predictions == labels.to(device)).sum().item()
    return correct / len(loader.dataset)


def main():
    config_path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("config.json"))
    config = json.loads(config_path.read_text())
    here = Path(__file__).resolve().parent
    root, output = here / config["data"], here / config["output"]
    output.mkdir(parents=True, exist_ok=True)
    make_photos(root)
    seed_everything(config["seed"])

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, test_loader = make_loaders(config, root)
    model = PetNet(len(train_loader.dataset.classes)).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"], weight_decay=config["weight_decay"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config["epochs"])
    print(f"{len(train_loader.dataset)} photos to train on, {len(test_loader.dataset)} to test on, on {device}")

    best = 0.0
    with open(output / "train.log", "w", buffering=1) as log:
        for epoch in range(1, config["epochs"] + 1):
            started = time.time()
            train_epoch(model, train_loader, criterion, optimizer, device, epoch, log)
            trained = time.time() - started
            scheduler.step()
            accuracy = evaluate(model, test_loader, device)
            print(f"epoch {epoch}: trained in {trained:.3f} s, test accuracy {accuracy:.3f}", flush=True)
            torch.save({"model": model.state_dict(), "epoch": epoch, "config": config}, output / "last.pt")
            if accuracy > best:
                best = accuracy
                torch.save(model.state_dict(), output / "best.pt")
    print(f"best test accuracy {best:.3f}")


if __name__ == "__main__":
    main()
