"""Workers started by spawn: guarded, seeded one by one, kept from one epoch to the next."""

import random
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Sounds(Dataset):
    def __len__(self):
        return 192

    def __getitem__(self, index):
        time.sleep(0.008)
        return torch.ones(4), 1


def seed_worker(number):
    random.seed(number)


def main(epochs):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator()
    generator.manual_seed(0)
    loader = DataLoader(
        Sounds(),
        batch_size=4,
        shuffle=True,
        num_workers=1,
        worker_init_fn=seed_worker,
        generator=generator,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for sounds, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(sounds), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
