"""The loader's class is bound to its arguments first."""

from functools import partial

from rows import Rows, train
from torch.utils.data import DataLoader

make_loader = partial(DataLoader, batch_size=8, shuffle=True)

if __name__ == "__main__":
    train(make_loader(Rows()))
