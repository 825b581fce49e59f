"""accelerate prepares the loader."""

import torch
from accelerate import Accelerator
from rows import Net, Rows
from torch import nn
from torch.utils.data import DataLoader

if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net, optimizer, loader = accelerator.prepare(net, optimizer, DataLoader(Rows(), batch_size=8, shuffle=True))
    for _ in range(1000):
        for rows, labels in loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(net(rows), labels))
            optimizer.step()
