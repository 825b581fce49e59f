"""Another module makes the loader."""

from loaders import loader_for
from rows import Rows, train

if __name__ == "__main__":
    train(loader_for(Rows(), 8))
