"""The arguments are a dict of the program's own."""

from rows import Rows, train
from torch.utils.data import DataLoader

LOADER = {"batch_size": 8, "shuffle": True}

if __name__ == "__main__":
    train(DataLoader(Rows(), **LOADER))
