"""Options wherever people put them, for every command and every option that it has, as click knows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from bottleneck_doctor.cli import doctor, main
from bottleneck_doctor.cli._entrypoint import split_words
from bottleneck_doctor.cli._placement import Command, StartingCommand
from bottleneck_doctor.errors import Exit

with click.Context(doctor, info_name="doctor", **doctor.context_settings) as CONTEXT:
    COMMANDS = {name: doctor.get_command(CONTEXT, name) for name in doctor.list_commands(CONTEXT)}
STARTING = [name for name, command in COMMANDS.items() if isinstance(command, StartingCommand)]
TARGETS = [["train.py"], ["-m", "pkg.train"]]
ARGUMENTS = ["--lr", "a b"]

Asked = tuple[str, dict[str, Any], tuple[str, ...]]
Ask = Callable[..., list[Asked]]


def options_of(name: str) -> list[click.Option]:
    command = COMMANDS[name]
    assert command is not None
    with click.Context(command, parent=CONTEXT) as context:
        return [each for each in command.get_params(context) if isinstance(each, click.Option)]


def value_of(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[0])
    return "7" if isinstance(option.type, (click.types.IntParamType, click.IntRange)) else "some thing"


def takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def written(option: click.Option) -> Iterator[list[str]]:
    """All ways to write an option by its whole name."""
    for name in (*option.opts, *option.secondary_opts):
        if not takes_value(option):
            yield [name]
            continue
        yield [name, value_of(option)]
        if name.startswith("--"):
            yield [f"{name}={value_of(option)}"]


WAYS = [(name, option.name, words) for name in STARTING for option in options_of(name) for words in written(option)]
VALUED = [
    (name, spelled)
    for name in COMMANDS
    for option in options_of(name)
    if takes_value(option)
    for spelled in option.opts
]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    """Runs a command line whose commands only tell what they were asked: options, and the script's arguments."""
    asked: list[Asked] = []
    monkeypatch.chdir(tmp_path)

    def recorder(name: str) -> Callable[..., int]:
        def record(**parameters: Any) -> int:
            words = parameters.pop("words")
            module = parameters["module"]
            if module is None and words:
                script, arguments = split_words(name, None, words)
                asked.append((name, {**parameters, "script": str(script)}, arguments))
            else:
                asked.append((name, {**parameters, "script": None}, words))
            return Exit.DONE

        return record

    for name in STARTING:
        monkeypatch.setattr(COMMANDS[name], "callback", recorder(name))

    def run(*words: str) -> list[Asked]:
        asked.clear()
        code = main(words)
        assert code == (Exit.DONE if asked else Exit.USAGE)
        return list(asked)

    return run


def shown(capsys: pytest.CaptureFixture[str], slug: str) -> tuple[str, list[list[str]]]:
    """The sentence of a refusal, and the words of the commands that it shows."""
    said = capsys.readouterr()
    assert said.out == ""
    found = re.fullmatch(r"doctor: (.*) \[([a-z-]+)\]\n((?:  → |    ).*\n)+", said.err)
    assert found is not None, said.err
    assert found[2] == slug
    return found[1], [shlex.split(line)[1:] for line in re.findall(r": (doctor .*)$", said.err, re.MULTILINE)]


def test_every_command_is_covered() -> None:
    assert STARTING == ["baseline", "check", "run", "try"]
    assert all(isinstance(command, Command) for command in COMMANDS.values())
    assert len(WAYS) > 100  # A mistake above would let nothing be tested at all.


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[0])
@pytest.mark.parametrize(("name", "option", "words"), WAYS, ids=lambda value: str(value))
def test_an_option_of_ours_after_the_script_is_told_where_it_belongs(
    name: str, option: str, words: list[str], target: list[str], ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(name, *target, *ARGUMENTS, *words) == []
    sentence, commands = shown(capsys, "option-misplaced")
    assert sentence.startswith(f"{words[0].partition('=')[0]} comes after {shlex.join(target)}. There it could be an ")
    ours, theirs = commands

    # The second command hands the script what stood behind it, and us nothing.
    assert ask(*theirs) == ask(name, *target, "--", *ARGUMENTS, *words)
    ((_, parameters, arguments),) = ask(*theirs)
    assert arguments == (*ARGUMENTS, *words)
    assert parameters == ask(name, *target)[0][1]

    # The first hands us the option, and the script the rest.
    if words[0] in ("-h", "--help"):
        assert ours == [name, "--help"]
    elif option == "line":
        assert ask(*ours) == ask(name, *words)
    elif option == "module":
        assert ask(*ours) == ask(name, *words, "--", *ARGUMENTS)
    else:
        assert ask(*ours) == ask(name, *words, *target, "--", *ARGUMENTS)
        assert ask(*ours)[0][1] != parameters


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[0])
@pytest.mark.parametrize(("name", "option", "words"), WAYS, ids=lambda value: str(value))
def test_what_stands_between_script_and_dashes_is_ours(
    name: str, option: str, words: list[str], target: list[str], ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] in ("-h", "--help"):
        assert main([name, *target, *words, "--", *ARGUMENTS]) == Exit.DONE
        assert capsys.readouterr().out.startswith(f"Usage: doctor {name} ")
    elif option == "module" and target == ["train.py"]:
        assert ask(name, *target, *words, "--", *ARGUMENTS) == []
        assert shown(capsys, "usage")[0] == "Give either train.py or -m MODULE, not both."
    else:
        first = [*target, *words] if option == "module" else [*words, *target]
        expected = ask(name, *first, "--", *ARGUMENTS)
        assert expected[0][2] == tuple(ARGUMENTS)
        assert ask(name, *target, *words, "--", *ARGUMENTS) == expected


@pytest.mark.parametrize(("name", "option", "words"), WAYS, ids=lambda value: str(value))
def test_what_stands_behind_dashes_is_the_scripts(name: str, option: str, words: list[str], ask: Ask) -> None:
    for target in TARGETS:
        assert ask(name, *target, "--", *words)[0][2] == tuple(words)


@pytest.mark.parametrize(("name", "spelled"), VALUED)
@pytest.mark.parametrize("next_word", ["--output=x", "--json", "-v", "--"])
def test_no_option_is_taken_for_the_value_of_another(
    name: str, spelled: str, next_word: str, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    if (spelled, next_word) == ("--args", "--output=x"):
        # Words of the script's own, which begin with a dash as a rule.
        assert ask(name, spelled, next_word, "x.py")[0][1]["arguments"] == (next_word,)
        return
    for words in [[spelled, next_word, "x"], *([["x.py", spelled, "--", "x"]] if name in STARTING else [])]:
        assert main([name, *words]) == Exit.USAGE
        sentence, commands = shown(capsys, "value-missing")
        instead = words[words.index(spelled) + 1].split("=")[0]
        assert sentence == f"{spelled} needs a value, but {'`--`' if instead == '--' else instead} follows it."
        assert commands == []


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (["--base-ref", "--output=x"], "Write a value directly after --base-ref, as in --base-ref origin/main."),
        (["--budget", "-x"], "Write a value directly after --budget, as in --budget 5m."),
        (["--json", "--threshold", "3%"], "Write a value directly after --json, as in --json FILE."),
        (
            ["--json", "--odd"],
            "Write a value directly after --json, as in --json FILE. "
            "If the value itself begins with a dash, write --json=VALUE.",
        ),
    ],
)
def test_a_missing_value_is_asked_for_by_an_example(
    words: list[str], step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *words, "train.py"]) == Exit.USAGE
    # No revision and no time begins with a dash, so nobody is told how to write one that does.
    assert capsys.readouterr().err.splitlines()[1:] == [f"  → {step}"]


def test_a_value_may_begin_with_a_dash(ask: Ask) -> None:
    assert ask("run", "--seed", "-3", "train.py")[0][1]["seed"] == -3
    assert ask("check", "--json", "-", "train.py")[0][1]["json"] == Path("-")
    assert ask("check", "train.py", "--json", "-", "--seed", "-3", "--")[0][1]["seed"] == -3
    assert ask("check", "--base-ref=--odd", "train.py")[0][1]["base_ref"] == "--odd"
    assert ask("run", "-o-odd", "train.py")[0][1]["output"] == Path("-odd")


@pytest.mark.parametrize("words", [["-qv"], ["-vqoout"], ["-vo", "out"], ["-v", "--budget", "5m", "-o", "out"]])
@pytest.mark.parametrize("name", ["run", "baseline"])
def test_short_options_may_be_written_together(name: str, words: list[str], ask: Ask) -> None:
    expected = ask(name, *words, "train.py", "--", "x")
    assert expected[0][1]["verbose"] is True
    assert ask(name, "train.py", *words, "--", "x") == expected
    assert ask(name, *words, "-m", "pkg", "--", "x") == ask(name, "-m", "pkg", *words, "--", "x")


@pytest.mark.parametrize("name", STARTING)
def test_what_is_no_option_of_ours_goes_to_the_script(name: str, ask: Ask) -> None:
    for words in (["--epochs", "3"], ["--quiet=1"], ["-vq"], ["config.json", "", "-x"], ["--budgets", "3"], ["-"]):
        for target in TARGETS:
            assert ask(name, *target, *words)[0][2] == tuple(words)


@pytest.mark.parametrize(
    ("line", "said", "commands"),
    [
        (
            "check train.py --base-ref origin/main",
            "--base-ref comes after train.py. There it could be an option of the script or of doctor check.",
            ["check --base-ref origin/main train.py", "check train.py -- --base-ref origin/main"],
        ),
        (
            "check -q a.py c.json --base-ref main -v --lr 3 --pairs=4",
            "--base-ref, -v and --pairs come after a.py. There they could be options of the script or of doctor check.",
            [
                "check -q --base-ref main -v --pairs=4 a.py -- c.json --lr 3",
                "check -q a.py -- c.json --base-ref main -v --lr 3 --pairs=4",
            ],
        ),
        (
            "run 'my train.py' --launch 'torchrun --nproc-per-node 2'",
            "--launch comes after 'my train.py'. There it could be an option of the script or of doctor run.",
            [
                "run --launch 'torchrun --nproc-per-node 2' 'my train.py'",
                "run 'my train.py' -- --launch 'torchrun --nproc-per-node 2'",
            ],
        ),
        # The value that the user forgot is shown by its kind; no option of the script's is taken for it.
        (
            "run train.py --seed --epochs 3",
            "--seed comes after train.py. There it could be an option of the script or of doctor run.",
            ["run --seed N train.py -- --epochs 3", "run train.py -- --seed --epochs 3"],
        ),
        # Given before already, it is the later one that counts, unless there may be several.
        (
            "run -qv --seed 1 --only workers train.py --seed=2 --only amp-bf16",
            "--seed and --only come after train.py. There they could be options of the script or of doctor run.",
            [
                "run -qv --only workers --seed=2 --only amp-bf16 train.py",
                "run -qv --seed 1 --only workers train.py -- --seed=2 --only amp-bf16",
            ],
        ),
    ],
)
def test_the_right_order_is_shown_as_a_command(
    line: str, said: str, commands: list[str], ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(*shlex.split(line)) == []
    assert shown(capsys, "option-misplaced") == (said, [shlex.split(each) for each in commands])


@pytest.mark.parametrize(
    ("line", "said", "commands"),
    [
        (
            "run train.py --epochs 3 -- --lr 1",
            "Only options of doctor run belong between train.py and `--`, and --epochs is not one.",
            ["run train.py -- --epochs 3 --lr 1", "run train.py -- --epochs 3 -- --lr 1"],
        ),
        (
            "run -q train.py a --seed 3 --",
            "Only options of doctor run belong between train.py and `--`, and a is not one.",
            ["run -q --seed 3 train.py -- a"],
        ),
        (
            "check -m pkg.train --bugdet=5m --base-ref main -- x",
            "Only options of doctor check belong between -m pkg.train and `--`, and --bugdet is not one; "
            "did you mean --budget?",
            [
                "check -m pkg.train --base-ref main -- --bugdet=5m x",
                "check -m pkg.train --base-ref main -- --bugdet=5m -- x",
            ],
        ),
    ],
)
def test_what_is_no_option_before_dashes_is_refused(
    line: str, said: str, commands: list[str], ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(*shlex.split(line)) == []
    assert shown(capsys, "not-an-option") == (said, [shlex.split(each) for each in commands])
    for each in commands:
        assert ask(*shlex.split(each))


@pytest.mark.parametrize(
    "line",
    [
        "run train.py --hf-token abc12 --seed 3 --db=postgresql://me:s3cret@host/x",
        "run train.py --hf-token abc12 --db=postgresql://me:s3cret@host/x -- 3",
        "run train.py password=abc12 --db=postgresql://me:s3cret@host/x -- 3",
        "run --seed --hf-token=abc12 train.py --db=postgresql://me:s3cret@host/x",
    ],
)
def test_no_secret_is_shown(line: str, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(*shlex.split(line)) == []
    said = capsys.readouterr().err
    assert "abc12" not in said
    assert "s3cret" not in said


def test_a_ref_after_the_script_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert main(["check", "train.py", "--base-ref", "origin/main"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "There is nothing to compare with" not in said
    assert "doctor check --base-ref origin/main train.py\n" in said
    assert main(["check", "train.py", "--base-ref", "origin/main", "--", "--epochs", "3"]) == Exit.USAGE
    assert "[not-a-repository]" in capsys.readouterr().err  # It was understood: git is asked next.
