"""fastai's Learner over its own DataLoaders, which make an iterator of torch's around themselves."""

import sys
import time
import warnings

import torch
from fastai.callback.progress import ProgressCallback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.optimizer import SGD
from torch.utils.data import Dataset

warnings.simplefilter("ignore")


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        time.sleep(0.006)
        return torch.ones(4), torch.ones(1)


class Model(torch.nn.Linear):
    def forward(self, rows):
        time.sleep(0.006)
        return super().forward(rows)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loaders = DataLoaders.from_dsets(Rows(4 * batches), Rows(4), bs=4, num_workers=0, device="cpu")
    learner = Learner(loaders, Model(4, 1), loss_func=torch.nn.functional.mse_loss, opt_func=SGD, lr=0.01)
    learner.remove_cb(ProgressCallback)
    with learner.no_logging():
        learner.fit(1)
    # How many batches an epoch had depends on windows: fastai's loader is an iterable, which each of them starts anew.
    print("trained")


if __name__ == "__main__":
    main(int(sys.argv[1]))
