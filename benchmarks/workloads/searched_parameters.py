"""Trains a wide network in two processes that look for parameters which a step leaves out, though none does."""

import argparse
import os
import socket

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def work(rank, port, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 1024), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    wide = [layer for _ in range(4) for layer in (nn.Linear(2048, 2048), nn.ReLU())]
    layers = (nn.Linear(1024, 2048), nn.ReLU(), *wide, nn.Linear(2048, 10))
    model = DistributedDataParallel(nn.Sequential(*layers), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, options.epochs + 1):
        loader.sampler.set_epoch(epoch)
        for rows, labels in loader:
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(work, (port, options), nprocs=2)


if __name__ == "__main__":
    main()
