"""Keras with torch as its backend: its own fit, over a loader of torch's, with an optimizer that is none of torch's."""

import os
import sys
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from torch.utils.data import DataLoader, Dataset


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


class Slow(keras.layers.Dense):
    def call(self, rows):
        time.sleep(0.006)
        return super().call(rows)


def main(batches):
    keras.utils.set_random_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Rows(4 * batches), batch_size=4)
    model = keras.Sequential([keras.Input((4,)), Slow(1)])
    model.compile(loss="mean_squared_error", optimizer=keras.optimizers.SGD(0.01))
    history = model.fit(loader, epochs=1, verbose=0)
    print("trained", len(history.history["loss"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
