"""Trains on graphs, with a loader of its own that joins the graphs of a batch into one, as graph libraries do."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Graph:
    """Nodes with features, and pairs of nodes that are joined."""

    def __init__(self, nodes, edges, label):
        self.nodes, self.edges, self.label = nodes, edges, label


class Molecules(Dataset):
    def __init__(self, count):
        generator = random.Random(0)
        torch_generator = torch.Generator().manual_seed(0)
        self.graphs = []
        for number in range(count):
            size = generator.randrange(20, 60)
            edges = [(generator.randrange(size), generator.randrange(size)) for _ in range(6 * size)]
            self.graphs.append(Graph(torch.randn(size, 8, generator=torch_generator), edges, number % 2))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, index):
        return self.graphs[index]


class Collater:
    """Joins graphs: the nodes of each are numbered on from those of the one before."""

    def __call__(self, graphs):
        first, edges, owners = 0, [], []
        for number, graph in enumerate(graphs):
            for start, end in graph.edges:
                edges.append(torch.tensor([start + first, end + first]))  # the slow line
            owners += [number] * len(graph.nodes)
            first += len(graph.nodes)
        nodes = torch.cat([graph.nodes for graph in graphs])
        labels = torch.tensor([graph.label for graph in graphs])
        return nodes, torch.stack(edges, 1), torch.tensor(owners), labels


class GraphLoader(DataLoader):
    def __init__(self, dataset, **options):
        super().__init__(dataset, collate_fn=Collater(), **options)


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(8, width), nn.Linear(width, 2)

    def forward(self, nodes, edges, owners, graphs):
        messages = torch.zeros_like(nodes).index_add(0, edges[1], nodes[edges[0]])
        hidden = self.first(nodes + messages).relu()
        pooled = torch.zeros(graphs, hidden.shape[1]).index_add(0, owners, hidden)
        return self.second(pooled)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = GraphLoader(Molecules(3200), batch_size=32, shuffle=True)
    model = Network(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, options.epochs + 1):
        for nodes, edges, owners, labels in loader:
            loss = nn.functional.cross_entropy(model(nodes, edges, owners, len(labels)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
