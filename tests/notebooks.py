"""Notebooks for tests, as Jupyter writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def notebook(
    *cells: str, indent: int | None = 1, as_text: bool = False, language: str = "python", kernel: str = "python3"
) -> bytes:
    """The file of a notebook with these cells of code, and a heading before them."""
    made: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# Täglich\n"]}]
    made += [_cell(cell, as_text) for cell in cells]
    document = {
        "cells": made,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": language, "name": kernel}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode()


def _cell(source: str, as_text: bool) -> dict[str, Any]:
    text: str | Sequence[str] = source if as_text else source.splitlines(keepends=True)
    outputs = [{"name": "stdout", "output_type": "stream", "text": ["epoch 1\n"]}]
    return {"cell_type": "code", "execution_count": 7, "metadata": {}, "outputs": outputs, "source": text}


def sources(content: bytes) -> list[str]:
    """The texts of a notebook's cells of code."""
    cells = json.loads(content)["cells"]
    return ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]
