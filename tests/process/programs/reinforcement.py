"""REINFORCE on a small walk: no loader anywhere, an optimizer step at the end of each episode."""

import sys
import time

import torch
from torch import nn


class Walk:
    def reset(self):
        self.place = 0
        return torch.tensor([0.0, 1.0])

    def step(self, action):
        time.sleep(0.002)
        self.place += 1 if action else -1
        return torch.tensor([self.place / 10, 1.0]), 0.1 * self.place


def main(episodes):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    walk = Walk()
    for episode in range(episodes):
        state, chosen, rewards = walk.reset(), [], []
        for _ in range(8):
            choice = torch.distributions.Categorical(logits=policy(state))
            action = choice.sample()
            chosen.append(choice.log_prob(action))
            state, reward = walk.step(action.item())
            rewards.append(reward)
        loss = -(torch.stack(chosen) * torch.tensor(rewards).flip(0).cumsum(0).flip(0)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (episode + 1) % 20 == 0:
            print(episode, f"{sum(rewards):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
