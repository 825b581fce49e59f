"""Two networks and two optimizers, the generator trained at every second batch only."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Faces(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.006)
        return torch.full((8,), 0.5)


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator, judge = nn.Linear(2, 8), nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
    of_generator = torch.optim.Adam(generator.parameters(), lr=0.001)
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.001)
    criterion = nn.BCELoss()
    noise = torch.ones(4, 2)
    for number, real in enumerate(DataLoader(Faces(4 * batches), batch_size=4, shuffle=True, drop_last=True)):
        of_judge.zero_grad()
        loss = criterion(judge(real), torch.ones(4, 1))
        loss.backward()
        fake = generator(noise)
        wrong = criterion(judge(fake.detach()), torch.zeros(4, 1))
        wrong.backward()
        of_judge.step()
        if number % 2:
            of_generator.zero_grad()
            criterion(judge(fake), torch.ones(4, 1)).backward()
            of_generator.step()
        time.sleep(0.006)
    print(f"judge {loss.item():.4f} {wrong.item():.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
