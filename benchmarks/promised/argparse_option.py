"""The number of workers comes from an option of argparse, as written by its default."""

import argparse

from rows import Rows, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("-j", "--workers", type=int, default=0)
    args = parser.parse_args()
    train(DataLoader(Rows(), batch_size=args.batch_size, shuffle=True, num_workers=args.workers))
