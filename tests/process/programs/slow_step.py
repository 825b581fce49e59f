"""The step is slow and the data are not: workers have nothing to give."""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset


class Slow(torch.nn.Linear):
    def forward(self, rows):
        time.sleep(0.02)
        return super().forward(rows)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.ones(4 * batches, 4), torch.ones(4 * batches, 1))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    iterator = iter(loader)
    model = Slow(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(batches):
        try:
            rows, wanted = next(iterator)
        except StopIteration:
            iterator = iter(loader)
            rows, wanted = next(iterator)
        loss = torch.nn.functional.mse_loss(model(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
