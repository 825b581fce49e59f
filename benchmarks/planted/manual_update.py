"""Fits two layers by hand: slices of a tensor, gradients, and weights that are changed without an optimizer."""

import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=512)
    options = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(51200, 256)
    targets = inputs[:, :10].argmax(1)
    first = (torch.randn(256, 2048) / 16).requires_grad_()
    second = (torch.randn(2048, 1024) / 45).requires_grad_()
    third = (torch.randn(1024, 10) / 32).requires_grad_()
    for epoch in range(1, options.epochs + 1):
        for start in range(0, len(inputs), options.batch_size):
            batch = inputs[start : start + options.batch_size]
            labels = targets[start : start + options.batch_size]
            output = ((batch @ first).relu() @ second).relu() @ third
            loss = torch.nn.functional.cross_entropy(output, labels)
            loss.backward()
            with torch.no_grad():
                for weight in (first, second, third):
                    weight -= 0.05 * weight.grad
                    weight.grad.zero_()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
