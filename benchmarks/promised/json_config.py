"""The number of workers comes from a JSON file, by way of a dict that is passed on."""

import json
import sys
from pathlib import Path

from rows import Rows, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    config = json.loads(Path(sys.argv[1]).read_text())
    train(DataLoader(Rows(), **config["loader"]))
