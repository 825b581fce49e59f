"""A loader whose arguments are written at the call."""

from rows import Rows, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    train(DataLoader(Rows(), batch_size=8, shuffle=True))
