"""Trains on nearly all rows at once, and evaluates on a few after each step."""

from evaluated_each_step import main

if __name__ == "__main__":
    main(trained=9900)
