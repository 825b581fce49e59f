"""The number of workers comes from a YAML file."""

import sys

import yaml
from rows import Rows, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        config = yaml.safe_load(file)
    train(
        DataLoader(
            Rows(), batch_size=config["data"]["batch_size"], shuffle=True, num_workers=config["data"]["num_workers"]
        )
    )
