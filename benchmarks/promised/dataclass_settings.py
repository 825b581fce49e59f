"""The number of workers is a field of a dataclass."""

from dataclasses import dataclass

from rows import Rows, train
from torch.utils.data import DataLoader


@dataclass
class Settings:
    batch_size: int = 8
    num_workers: int = 0


if __name__ == "__main__":
    settings = Settings()
    train(DataLoader(Rows(), batch_size=settings.batch_size, num_workers=settings.num_workers, shuffle=True))
