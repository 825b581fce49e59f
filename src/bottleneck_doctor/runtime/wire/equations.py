"""What an equation of `einsum` computes. Pure."""

from __future__ import annotations


def is_product(equation: str, *, turned: bool) -> bool:
    """Whether an equation is `bid,bjd->bij` (`turned`: the rows of the second are what a matrix has in its columns) or
    `bij,bjd->bid`, whatever its letters are."""
    left, arrow, made = equation.replace(" ", "").partition("->")
    one, comma, other = left.partition(",")
    if not arrow or not comma or "," in other or "." in equation or len({len(one), len(other), len(made)}) != 1:
        return False
    if len(one) < 3 or one[:-2] != other[:-2] or one[:-2] != made[:-2] or len(set(one)) != len(one):
        return False
    row, inner = one[-2], one[-1]
    shared, column = (other[-1], other[-2]) if turned else (other[-2], other[-1])
    return shared == inner and made[-2:] == row + column and len({row, inner, column}) == 3
