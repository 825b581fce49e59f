"""Makes the loader of factory.py."""

from typing import Any

from torch.utils.data import DataLoader, Dataset


def loader_for(dataset: Dataset[Any], batch_size: int) -> DataLoader[Any]:
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
    )
