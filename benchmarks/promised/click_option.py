"""The number of workers comes from an option of click."""

import click
from rows import Rows, train
from torch.utils.data import DataLoader


@click.command()
@click.option("--batch-size", default=8)
@click.option("--workers", default=0)
def main(batch_size: int, workers: int) -> None:
    train(DataLoader(Rows(), batch_size=batch_size, shuffle=True, num_workers=workers))


if __name__ == "__main__":
    main()
