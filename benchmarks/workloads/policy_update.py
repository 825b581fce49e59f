"""Updates a small policy on kept observations: several actions at once, whose probabilities and entropies it asks for.
torch's distributions check what they are given each time."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100000)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    observations = torch.randn(4096, 16)
    actions = observations[:, :8].abs().mul(2).long().clamp(max=4)
    advantages = torch.randn(4096)
    policy = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8 * 5))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3, fused=True)
    for epoch in range(1, options.epochs + 1):
        for start in range(0, len(observations), 64):
            part = slice(start, start + 64)
            loss = torch.zeros(())
            for logits, action in zip(policy(observations[part]).split(5, dim=1), actions[part].unbind(1), strict=True):
                chances = Categorical(logits=logits)
                loss = loss - (chances.log_prob(action) * advantages[part]).mean() - 0.01 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
