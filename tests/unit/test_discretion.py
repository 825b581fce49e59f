"""Secrets are masked wherever a command or a text is shown; what training is called is left as it is."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from tests.reports import invented

from bottleneck_doctor.cli._secrets import gathered
from bottleneck_doctor.documents.redaction import MASK, Discretion, discretion, is_secret_name
from bottleneck_doctor.documents.report import from_json, to_json
from bottleneck_doctor.render import html, terminal

KEYS = {
    "Hugging Face": "hf_" + "aBcDeFgHiJ" * 3,
    "OpenAI": "sk-proj-" + "aB3dE_fg-H" * 4,
    "GitHub": "ghp_" + "a1B2c3D4e5" * 4,
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
    "Slack": "xoxb-" + "1234567890-abcdef",
}


@pytest.mark.parametrize(
    "name",
    re.findall(
        r"\S+",
        """
--hf-token --api_key HF_TOKEN model.apiKey PGPASSWORD MYSQL_PWD AWS_SECRET_ACCESS_KEY wandb.key --auth
SESSION_COOKIE db_credentials hftoken --openai-api ENCRYPTION_KEY
""",
    ),
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    re.findall(
        r"\S+",
        """
--tokenizer TOKENIZERS_PARALLELISM --max-tokens --pad_token eosToken --image-key sort_key PWD OLDPWD SSH_AUTH_SOCK
--author --monkey --keyboard XAUTHORITY --token-file AWS_ACCESS_KEY_ID --use-auth-token --num-keys --lr
GOOGLE_AUTH_PROVIDER --passes
""",
    ),
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("train.py --hf-token abc --lr 0.1", "train.py --hf-token *** --lr 0.1"),
        ("train.py --hf-token=abc", "train.py --hf-token=***"),
        ("train.py --auth true --token 7", "train.py --auth true --token 7"),
        ("train.py +wandb.key=abc lr=3", "train.py +wandb.key=*** lr=3"),
        ("train.py --token --lr 3", "train.py --token --lr 3"),
        ("--token train.py", "--token train.py"),
        ("train.py s3://bucket --url https://bob:word@host:80/x", "train.py s3://bucket --url https://***@host:80/x"),
        ("train.py https://host/x?lr=3&sig=abc#end", "train.py https://host/x?lr=3&sig=***#end"),
        ('train.py \'{"password": "abc", "lr": 3}\'', 'train.py \'{"password": "***", "lr": 3}\''),
        ("--exec 'API_KEY=abc trl sft --token x --lr 3'", "--exec 'API_KEY=*** trl sft --token *** --lr 3'"),
        ("--launch 'run --token x' train.py", "--launch 'run --token ***' train.py"),
        ("train.py --eos-token '<eos>' --image-key jpeg", "train.py --eos-token '<eos>' --image-key jpeg"),
        ("train.py --password 'two words'", "train.py --password ***"),
        ("train.py password='two words'", "train.py password=***"),
    ],
)
def test_command_lines(given: str, shown: str) -> None:
    assert Discretion().words(shlex.split(given)) == shlex.split(shown)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_what_looks_like_a_key_is_masked_anywhere(key: str) -> None:
    plain = Discretion()
    assert plain.words(["train.py", "--name", key]) == ["train.py", "--name", MASK]
    assert plain.text(f"ValueError: {key!r} is no path") == f"ValueError: {MASK!r} is no path"
    assert plain.text(f"hub/{key}/resolve") == f"hub/{MASK}/resolve"


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'image_column'",
        "RuntimeError: Unexpected key: layers.0.weight",
        "    token = self.tokenizer(text)",
        "token: 3 of 500",
        "disk-based-loading-of-many-shards in hf_transformers_training_loop_name",
        "ssh://git@host/repository, user@host, 12:30:45 @ noon",
        "eyJust a word. with. dots",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert Discretion().output(text) == text


def test_known_values_are_masked_in_what_the_script_says() -> None:
    known = discretion(
        ["--token", "argument-1", "postgres://me:in-the-url@db/x"],
        {"API_KEY": "variable-2", "HOME": "/home/somebody", "PWD": "/home/somebody", "MY_KEY": "short"},
        ["lr: 0.1\npassword: in-a-file-3\n", '{"db": {"secret": "in json/4"}}'],
    )
    said = "argument-1 variable-2 in-the-url in-a-file-3 in%20json%2F4 in json/4 /home/somebody short"
    assert known.output(said) == f"{MASK} {MASK} {MASK} {MASK} {MASK} {MASK} /home/somebody short"


def test_a_configuration_that_the_script_prints() -> None:
    said = Discretion().output("Namespace(lr=0.1, api_key='tell-nobody', seed=3)\ndb_password: hidden12\n")
    assert said == f"Namespace(lr=0.1, api_key='{MASK}', seed=3)\ndb_password: {MASK}\n"


def test_a_private_key_is_masked_line_by_line() -> None:
    body = "MIIEpAIBAAKCAQEA1234567890\nabcdefghijklmnopqrstuvwx"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    known = discretion([], {"DEPLOY_KEY": key})
    assert "abcdefgh" not in known.text("it said abcdefghijklmnopqrstuvwx")
    assert "MIIE" not in Discretion().text(f"before\n{key}\nafter")
    assert Discretion().text(f"before\n{key}\nafter").endswith("\nafter")


def test_named_configuration_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUB_TOKEN", "from-the-environment")
    (tmp_path / "c.yaml").write_text("hub:\n  api_key: from-the-file\n")
    known = gathered(["run", "train.py", "--config", str(tmp_path / "c.yaml"), "--data=missing.json", "bad\0.json"])
    assert {"from-the-file", "from-the-environment"} <= set(known.values)
    inside = gathered(["--exec", f"trl sft --config={tmp_path / 'c.yaml'}"])
    assert "from-the-file" in inside.values


TRACEBACK = """\
starting
Traceback (most recent call last):
  File "/x/train.py", line 12, in <module>
    train(secret_sauce=1)
    ~~~~~^^^^^^^^^^^^^^^^
  File "/x/train.py", line 7, in train
    raise ValueError("no")
ValueError: no
done
"""


def test_without_source_tracebacks_name_places_only() -> None:
    said = Discretion(source=False).output(TRACEBACK)
    assert "secret_sauce" not in said
    assert "raise" not in said
    assert [line for line in said.splitlines() if line.startswith("  File")] == [
        '  File "/x/train.py", line 12, in <module>',
        '  File "/x/train.py", line 7, in train',
    ]
    assert said.splitlines()[-2:] == ["ValueError: no", "done"]
    assert Discretion().output(TRACEBACK) == TRACEBACK


def test_a_document_is_masked_but_for_our_own_words() -> None:
    result = invented("pets")
    assert Discretion().document(result) == result
    # Passwords that are words of ours: the document still reads, and still says what it says.
    known = discretion([], {"PASSWORD": "workers", "SECRET": "faster", "MY_SECRET": "optimizer step"})
    masked = known.document(result)
    assert from_json(to_json(masked), source="masked") == masked
    assert [fix.id for fix in masked.fixes] == [fix.id for fix in result.fixes]
    assert masked.baseline == result.baseline
    assert "workers" not in " ".join(finding.sentence for finding in masked.findings)


def test_without_source_no_line_of_code_is_left() -> None:
    result = invented("pets")
    assert result.profiles is not None
    assert result.profiles.lines is not None
    lines = [line.text.strip() for listing in result.profiles.lines.listings for line in listing.lines]
    lines += [line[1:].strip() for fix in result.fixes if fix.change for line in fix.change.diff.splitlines()[1:]]
    distinctive = {line for line in lines if len(line) > 12}
    assert len(distinctive) > 10
    result = replace(result, method=replace(result.method, source=False))
    bare = Discretion(source=False).document(result)
    outputs = {
        "json": to_json(bare).decode(),
        "html": html.render(bare),
        "terminal": terminal.render(bare, report_path="report.html", width=100, color=False),
    }
    for name, text in outputs.items():
        assert not [line for line in distinctive if line in text], name
    assert "--no-source" in outputs["html"]
    assert '"source": false' in outputs["json"]
    changed = [fix.change.line for fix in result.fixes if fix.change]
    assert [fix.change.line for fix in bare.fixes if fix.change] == changed


def test_a_masked_command_says_that_it_has_to_be_filled_in() -> None:
    result = invented("pets")
    command = ["doctor", "run", "train.py", "--", "--token", MASK]
    masked = replace(result, method=replace(result.method, command=command))
    for draw in (html.render, lambda each: terminal.render(each, report_path=None, width=100, color=False)):
        assert "fill it in" in draw(masked)
        assert "fill it in" not in draw(result)
