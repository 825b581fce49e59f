"""Learns to balance a chain of pendulums: plays in a simulation, then improves the policy on what it has seen."""

import argparse
import math
import random

import torch
from torch import nn

LINKS = 24


class Chain:
    """Pendulums that pull at their neighbours. The reward is how upright they stand."""

    def __init__(self, seed):
        self.generator = random.Random(seed)
        self.reset()

    def reset(self):
        self.angles = [self.generator.uniform(-0.5, 0.5) for _ in range(LINKS)]
        self.speeds = [0.0] * LINKS
        return self.state()

    def state(self):
        return self.angles[:8] + self.speeds[:8]

    def step(self, push):
        for _ in range(20):
            for link in range(LINKS):
                left, right = self.angles[link - 1], self.angles[(link + 1) % LINKS]  # the slow line
                pull = math.sin(left - self.angles[link]) + math.sin(right - self.angles[link])  # the slow line
                self.speeds[link] += 0.002 * (math.sin(self.angles[link]) + pull + push)  # the slow line
            for link in range(LINKS):
                self.angles[link] += 0.002 * self.speeds[link]  # the slow line
        return self.state(), sum(math.cos(angle) for angle in self.angles) / LINKS


@torch.no_grad()
def play(chain, policy, length):
    """States, actions and rewards of so many steps."""
    state, states, actions, rewards = chain.reset(), [], [], []
    for _ in range(length):
        action = torch.distributions.Categorical(logits=policy(torch.tensor(state))).sample().item()
        states.append(state)
        actions.append(action)
        state, reward = chain.step(float(action - 1))  # the slow line
        rewards.append(reward)
    return torch.tensor(states), torch.tensor(actions), torch.tensor(rewards)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=10000)
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()

    torch.manual_seed(0)
    chain = Chain(0)
    policy = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for iteration in range(1, options.iterations + 1):
        states, actions, rewards = play(chain, policy, options.length)
        returns = rewards.flip(0).cumsum(0).flip(0)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-6)
        for _ in range(2):
            for part in torch.randperm(options.length).chunk(4):
                chosen = torch.distributions.Categorical(logits=policy(states[part])).log_prob(actions[part])
                loss = -(chosen * advantages[part]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if iteration % 10 == 0:
            print(f"iteration {iteration} reward {rewards.mean().item():.3f}", flush=True)


if __name__ == "__main__":
    main()
