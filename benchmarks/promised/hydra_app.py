"""Hydra composes what the program trains with."""

import hydra
from omegaconf import DictConfig
from rows import Rows, train
from torch.utils.data import DataLoader


@hydra.main(version_base=None, config_path="hydra_conf", config_name="config")
def main(cfg: DictConfig) -> None:
    train(DataLoader(Rows(), batch_size=cfg.loader.batch_size, num_workers=cfg.loader.num_workers, shuffle=True))


if __name__ == "__main__":
    main()
