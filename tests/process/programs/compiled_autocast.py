"""A compiled model under the user's own autocast; the time goes where the step computes."""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset


def main(epochs):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.ones(320, 16), torch.ones(320, 1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for epoch in range(epochs):
        for rows, wanted in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.mse_loss(compiled(rows), wanted)
            loss.backward()
            optimizer.step()
            time.sleep(0.02)
        print(f"epoch {epoch} {loss.item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
