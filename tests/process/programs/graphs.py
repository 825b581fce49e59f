"""A graph network fed by torch_geometric's loader, whose batches are graphs and no tensors."""

import sys
import time

import torch
from torch_geometric.data import Data, Dataset
from torch_geometric.loader import DataLoader


class Molecules(Dataset):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def len(self):
        return self.count

    def get(self, index):
        time.sleep(0.006)
        edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        return Data(x=torch.ones(3, 4), edge_index=edges, y=torch.ones(1))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, data):
        gathered = data.x.clone().index_add(0, data.edge_index[1], data.x[data.edge_index[0]])
        return torch.zeros(data.num_graphs, 1).index_add(0, data.batch, self.layer(gathered))


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for data in DataLoader(Molecules(4 * batches), batch_size=4, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data).squeeze(1), data.y)
        loss.backward()
        optimizer.step()
        time.sleep(0.006)
    print(f"{loss.item():.5f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
