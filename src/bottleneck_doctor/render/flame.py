"""Call trees as flame graphs: a `CallNode` goes in, inline SVG comes out.

Callers are above what they call, and a frame is as wide as its share of the samples. The drawing fits any width without
scripts: its frames are nested drawings placed by percentages, so that text keeps its size and is cut off at the frame's
edge. Like all drawings here it has classes for the stylesheet and neither `style=` nor handlers; where a stylesheet is
refused, attributes give it colours.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import Markup

from bottleneck_doctor.documents.report import CallNode
from bottleneck_doctor.wording import words

ROW = 20
"""Pixels from one row to the next."""

LEAST_SHARE = 0.0015
"""Narrower frames are left out."""

LEAST_TEXT = 0.02
"""Narrower frames hold no text."""

DEEPEST = 80
LONGEST_RUN = 3
"""So many calls that do nothing but call the next are drawn one by one; of more, only that they are there."""

SHADES = 3

PLAIN = {
    "own": ("#14997f", "#0c1210"), "lib-0": ("#dfe4e7", "#14181c"), "lib-1": ("#d3dade", "#14181c"),
    "lib-2": ("#eaeef0", "#14181c"), "run": ("none", "currentColor"), "same": ("#eaeef0", "#14181c"),
    "grew-1": ("#ffe3bf", "#14181c"), "grew-2": ("#ffbf75", "#14181c"), "grew-3": ("#f28c28", "#14181c"),
    "shrank-1": ("#d9e6f8", "#14181c"), "shrank-2": ("#a9c7f0", "#14181c"), "shrank-3": ("#76a5e3", "#14181c"),
}  # fmt: skip
"""Colours of a frame and of its text by kind, where no stylesheet is let in: readable on light and on dark paper."""

ROLE_WORDS = {"main": "Main process", "workers": "Loader workers"}

_INSTALLED = re.compile(r"^.*/(?:site-packages|dist-packages|python\d[\d.]*t?)/")


@dataclass(frozen=True)
class Placed:
    """A frame with its place: shares of the width, and the row from 0. `run`: the calls that are drawn as one."""

    node: CallNode
    start: float
    width: float
    row: int
    run: tuple[CallNode, ...] = ()


def flame(tree: CallNode, *, label: str, least: float = LEAST_SHARE) -> str:
    """One flame graph as markup. `label` says whose it is: "main process". Frames below the share `least` are left out;
    the drawing takes about 350 bytes for each of the others."""
    return graph(
        f"Flame graph, {label}: {words.count_text(tree.count, 'sample')}",
        placed(tree, least),
        lambda each: _drawn(each, tree.count),
    )


def graph(title: str, frames: Sequence[Placed], drawn: Callable[[Placed], Markup]) -> str:
    """The whole drawing. `drawn`: one frame as markup, made by `frame`."""
    rows = max((each.row for each in frames), default=0) + 1
    return Markup(
        '<svg class="flame" role="img" width="100%" height="{}" font-size="12" focusable="false">'
        "<title>{}</title>{}</svg>"
    ).format(rows * ROW, words.visible(title), Markup("").join(drawn(each) for each in frames))


def placed(tree: CallNode, least: float = LEAST_SHARE) -> list[Placed]:
    """Every frame that is wide enough, from the top down. The tree's own root is not drawn."""
    frames: list[Placed] = []
    total = max(tree.count, 1)
    waiting: list[tuple[CallNode, float, int]] = [(tree, 0.0, 0)]
    while waiting:
        parent, start, row = waiting.pop()
        for child in parent.children:
            width = child.count / total
            if width >= least and row < DEEPEST:
                run = _run(child)
                if len(run) > LONGEST_RUN:
                    frames.append(Placed(child, start, width, row, tuple(run)))
                    waiting.append((run[-1], start, row + 1))
                else:
                    frames.append(Placed(child, start, width, row))
                    waiting.append((child, start, row + 1))
            start += width
    return sorted(frames, key=lambda frame: (frame.row, frame.start))


def _run(node: CallNode) -> list[CallNode]:
    """`node` and the library calls below it, as far as each does nothing but call the next."""
    run = [node]
    while not run[-1].own and len(run[-1].children) == 1:
        (child,) = run[-1].children
        if child.own or child.count < run[-1].count:
            break
        run.append(child)
    return run


def _drawn(each: Placed, total: int) -> Markup:
    node = each.node
    where = words.place_text(node.path, node.line) if node.path else ""
    share = f"{words.share_text(node.count / max(total, 1))}, {words.count_text(node.count, 'sample')}"
    if each.run:
        last = each.run[-1]
        title = (
            f"{words.count_text(len(each.run), 'call')}, from {node.name} ({where}) "
            f"to {last.name} ({words.place_text(last.path, last.line)}): {share}"
        )
        text, kind = f"… {words.count_text(len(each.run), 'call')} in {_package(last.path)} …", "run"
    elif node.own:
        title = f"{node.name} ({where}): {share}"
        text, kind = f"{node.name}  {words.site_text(PurePosixPath(node.path).name, node.line)}", "own"
    else:
        title = f"{node.name} ({where}): {share}"
        # By file, so that neighbours can be told apart and a file looks the same everywhere.
        text, kind = node.name, f"lib-{zlib.crc32(node.path.encode(errors='replace')) % SHADES}"
    return frame(each, kind, title, text)


def frame(each: Placed, kind: str, title: str, text: str) -> Markup:
    """One frame: `kind` is its class, `title` is shown on hover, `text` inside where there is room."""
    fill, ink = PLAIN.get(kind, PLAIN["same"])
    label = Markup("")
    if each.width >= LEAST_TEXT:
        label = Markup('<text x="5" y="14" fill="{}">{}</text>').format(ink, words.clipped(words.visible(text), 120))
    return Markup(
        '<g class="{}"><title>{}</title><svg x="{}%" y="{}" width="{}%" height="{}">'
        '<rect width="100%" height="100%" fill="{}" stroke="#8f9aa5"></rect>{}</svg></g>'
    ).format(
        kind,
        words.clipped(words.visible(title), 600),
        _percent(each.start),
        each.row * ROW,
        _percent(each.width),
        ROW - 1,
        fill,
        label,
    )


def _percent(share: float) -> str:
    return f"{share * 100:.3f}".rstrip("0").rstrip(".")


def _package(path: str) -> str:
    first = short_path(path).partition("/")[0]
    return first.removesuffix(".py") or "libraries"


def short_path(path: str, cwd: str = "") -> str:
    """A library's path without the folder that it is installed in, one below `cwd` from there, any other as it is."""
    plain = path.replace("\\", "/")
    home = cwd.replace("\\", "/").rstrip("/") + "/"
    return plain[len(home) :] if len(home) > 1 and plain.startswith(home) else _INSTALLED.sub("", plain)
