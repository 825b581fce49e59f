"""Trains a small network that plays a game of its own making, without a loader, with the threads of a larger machine.

python too_many_threads.py --games 1000
"""

import argparse
import time

import torch
from torch import nn


def play(policy, steps, generator):
    """Positions, moves and rewards of one game: the nearer to the middle of the board, the better."""
    position = torch.rand(8, generator=generator)
    positions, moves, rewards = [], [], []
    for _ in range(steps):
        with torch.no_grad():
            move = torch.distributions.Categorical(logits=policy(position)).sample()
        positions.append(position)
        moves.append(move)
        position = (position + 0.1 * (torch.arange(8) == move)).remainder(1.0)
        rewards.append(-(position - 0.5).abs().sum())
    return torch.stack(positions), torch.stack(moves), torch.stack(rewards)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=100_000)
    args = parser.parse_args()

    torch.set_num_threads(16)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    policy = nn.Sequential(nn.Linear(8, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    began = time.perf_counter()
    for game in range(1, args.games + 1):
        positions, moves, rewards = play(policy, 16, generator)
        returns = rewards.flip(0).cumsum(0).flip(0)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-6)
        for _ in range(8):
            chosen = torch.distributions.Categorical(logits=policy(positions.repeat(32, 1))).log_prob(moves.repeat(32))
            loss = -(chosen * advantages.repeat(32)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if game % 20 == 0:
            print(f"{1000 * (time.perf_counter() - began) / 20:.0f} ms a game", flush=True)
            began = time.perf_counter()


if __name__ == "__main__":
    main()
