"""`doctor hot` and `doctor flame` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bottleneck_doctor.cli import main

LINES = """\
process 10:"python train.py";main (/home/me/train.py:8);read (/usr/lib/python3.11/codecs.py:322) 60
process 10:"python train.py";main (/home/me/train.py:12) 39
process 10:"python train.py";main (/home/me/train.py:13) 1
process 10:"python train.py";process 11:"python train.py";_worker_loop (torch/utils/data/_utils/worker.py:3);\
load (data.py:4) 7
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spy.raw").write_text(LINES)


def test_hot_prints_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hot", "spy.raw"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Main process, 100 samples",
        "share  samples  deepest function                                     your line that called it",
        " 60 %       60  read              /usr/lib/python3.11/codecs.py:322  main                      "
        "/home/me/train.py:8",
        " 40 %       40  main              /home/me/train.py:12               main                      "
        "/home/me/train.py:12",
        "",
        "Loader workers, 7 samples",
        "share  samples  deepest function             your line that called it",
        "100 %        7  load              data.py:4  load                      data.py:4",
    ]


def test_hot_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hot", "spy.raw", "--no-merge", "--top", "2", "--library-name", "codecs"]) == 0
    out = capsys.readouterr().out
    assert "line of codecs that called it" in out
    assert "train.py:12" in out
    assert "train.py:13" not in out, "two rows"
    assert main(["hot", "spy.raw", "--library-name", "numpy"]) == 2
    assert "[unknown-library]" in capsys.readouterr().err


def test_hot_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    (Path("node1.raw")).write_text(LINES + "broken\n")
    assert main(["hot", "--json", "spy.raw", "node1.raw"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["samples"] == {"main": 200, "workers": 14}
    assert document["notes"] == ["1 line that holds no stack was skipped (first: node1.raw, line 5)."]
    assert document["functions"][0] == {
        "role": "main",
        "name": "read",
        "path": "/usr/lib/python3.11/codecs.py",
        "line": 322,
        "own_name": "main",
        "own_path": "/home/me/train.py",
        "own_line": 8,
        "share": 0.6,
        "count": 120,
    }


def test_flame_writes_a_page_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flame", "spy.raw", "-o", "out/graph.html"]) == 0
    assert capsys.readouterr().out == "out/graph.html\n"
    page = Path("out/graph.html").read_text("utf-8")
    assert "spy.raw" in page
    assert page.count('<svg class="flame"') == 2
    assert main(["flame", "spy.raw", "-o", "out/graph.html"]) == 0, "an earlier page of its own is overwritten"


def test_flame_leaves_files_of_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("flame.html").write_text("mine")
    assert main(["flame", "spy.raw"]) == 2
    err = capsys.readouterr().err
    assert "[output-not-ours]" in err
    assert "-o FILE" in err
    assert Path("flame.html").read_text() == "mine"


@pytest.mark.parametrize("command", ["hot", "flame"])
@pytest.mark.parametrize(("content", "slug"), [(None, "raw-missing"), (b"", "raw-empty"), (b"\0\1", "raw-unreadable")])
def test_what_is_no_recording(
    command: str, content: bytes | None, slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path("other").write_bytes(content)
    assert main([command, "other"]) == 2
    assert f"[{slug}]" in capsys.readouterr().err
    assert not Path("flame.html").exists()
