"""Commands that start the entrypoint, and the words of ours that start it again."""

from __future__ import annotations

import pytest

from bottleneck_doctor.launch import again


@pytest.mark.parametrize(
    ("entrypoint", "module", "as_it_is", "said"),
    [
        (("train.py",), False, False, ["train.py"]),
        (("train.py", "--epochs", "3"), False, False, ["train.py", "--", "--epochs", "3"]),
        (("-m", "pets.train"), True, False, ["-m", "pets.train"]),
        (("-m", "pets.train", "--epochs", "3"), True, False, ["-m", "pets.train", "--epochs", "3"]),
        (("trl", "sft", "a b"), False, True, ["--exec", "KEY=... trl sft 'a b'"]),
    ],
)
def test_what_starts_the_same(entrypoint: tuple[str, ...], module: bool, as_it_is: bool, said: list[str]) -> None:
    assert again(entrypoint, module=module, as_it_is=as_it_is, environment={"KEY": "secret"}) == said
