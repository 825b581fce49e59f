"""What no output may tell: keys, passwords and tokens out of arguments, variables and configurations.

What the user started and what surrounds it goes in, a `Discretion` comes out, which masks command lines, texts and
whole documents. A value is masked because of the name that it is given under (`--hf-token`, `AWS_SECRET_ACCESS_KEY`),
because it looks like a key itself (`hf_...`, a URL with a password), or because it was seen under such a name
elsewhere. Names are told, values are not. With `source=False` no line of the user's code is told either. Pure.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar
from urllib.parse import quote

MASK = "***"
SHORTEST = 6
"""Characters that a secret must have to be looked for in other texts: a shorter one is part of too many words."""
_SHORTEST_LINE = 16
"""The same of one line of several, as in a private key."""

_ALWAYS = re.compile(r"passw(or)?d|passphrase|secret|credential|apikey|accesskey|privatekey|authkey|bearer")
_PARTS = frozenset({"auth", "authorization", "cookie", "jwt", "key", "pass", "pat", "pwd", "token"})
_NOT_SECRET = re.compile(
    r"adapter|bos|class|cls|collate|column|count|dict|dim|disable|enable|eos|feature|foreign|group|"
    r"head|image|img|index|input|item|join|label|lookup|map|mask|max|mean|metric|min|modality|"
    r"monitor|new|no|num|number|output|pad|partition|primary|prompt|query|reg|sample|sep|size|sort|"
    r"special|state|target|text|tgt|unk|use|val|value|video|vocab"
)
"""Words that beside `key` or `token` name a part of the data (`--image-key`, `--eos-token`) or a switch."""
_NO_VALUE = re.compile(
    r"backend|base|cls|dim|dims|dir|domain|enabled|endpoint|env|file|folder|format|helper|host|id|"
    r"len|length|method|mode|name|path|port|programs|provider|region|server|sock|socket|timeout|ttl|"
    r"type|types|uri|url|user|username|version"
)
"""A name that ends in one of these says where or how a secret is kept, not what it is: `SSH_AUTH_SOCK`."""
_OPEN = frozenset({"PWD", "OLDPWD"})
_VAGUE = frozenset({"auth", "cookie", "key", "pass", "pat", "token"})
"""Names that in a script's own words may mean anything, so that the value has to look like a key too."""
_COMMANDS = frozenset({"--args", "--base-setup", "--exec", "--launch", "-c"})
"""Options whose value is a command line itself."""
_PLAIN = re.compile(r"|true|false|yes|no|on|off|none|null|auto|\d{1,5}", re.IGNORECASE)
"""Values that tell nothing, whatever their name."""
_FILE = re.compile(r"(~|\.{0,2})/[\w./~+-]*\.\w{1,8}")

_KEYS = re.compile(
    r"""(?<![A-Za-z0-9_-])(
    hf_[A-Za-z0-9]{20,} | sk-[A-Za-z0-9_-]{20,} | (?:gh[opusr]|github_pat)_[A-Za-z0-9_]{20,} | glpat-[\w-]{16,}
    | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9]) | AIza[\w-]{30,} | ya29\.[\w-]{20,} | xox[abeoprs]-[\w-]{10,}
    | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,} | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    )""",
    re.VERBOSE,
)
"""Hugging Face, OpenAI and Anthropic, GitHub, GitLab, AWS, Google, Slack, npm, PyPI, and JSON web tokens."""
_BEARER = re.compile(r"\b(Bearer|Basic)(\s+)[\w.~+/-]{12,}=*", re.IGNORECASE)
_PRIVATE = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_USER = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,20}://)([^\s/@'\"<>]*:[^\s/@'\"<>]+|[^\s/@:'\"<>]{16,})@")
_QUERY = re.compile(r"([?&;])([\w.-]+)=([^&;#\s'\"<>]+)")
_SIGNATURES = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})
_ASSIGNED = re.compile(r"(--?|\+{0,2})([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_PAIR = re.compile(
    r"""(?P<name>(?P<q>["']?)\b[A-Za-z_][\w-]{0,80}(?P=q))(?P<gap>[ \t]*[:=][ \t]*)"""
    r"""(?P<value>"(?:[^"\\\n]|\\.)+"|'(?:[^'\\\n]|\\.)+'|[^\s"'(),;\[\]{}]+)"""
)
"""`name: value`, `'name': 'value'` and `name=value`, as configurations and their dumps have it."""
_FRAME = re.compile(r'\s*File "[^"\n]*", line \d+')

Document = TypeVar("Document")


@dataclass(frozen=True)
class Discretion:
    """`values`: secrets that are known, the longest first. `source`: whether lines of the user's code may be told."""

    values: tuple[str, ...] = ()
    source: bool = True

    def words(self, words: Iterable[str]) -> list[str]:
        """A command line, with the values of secret arguments masked."""
        shown: list[str] = []
        before = ""
        for word in words:
            if before in _COMMANDS:
                shown.append(self._command(word))
            elif _expects_secret(before) and _is_value(word):
                shown.append(word if _PLAIN.fullmatch(word) else MASK)
            else:
                shown.append(self._word(word))
            before = word
        return shown

    def text(self, text: str) -> str:
        """Any text: what is known to be secret or looks like it is masked, everything else stays."""
        if len(text) < SHORTEST:
            return text
        for value in self.values:
            if value in text:
                text = text.replace(value, MASK)
        text = _PRIVATE.sub(rf"\1{MASK}\2", text)
        text = _USER.sub(rf"\1{MASK}@", text)
        text = _QUERY.sub(lambda found: f"{found[1]}{found[2]}={MASK}" if _is_query(found[2]) else found[0], text)
        text = _BEARER.sub(rf"\1\2{MASK}", text)
        return _KEYS.sub(MASK, text)

    def output(self, text: str) -> str:
        """What the script itself wrote: as `text`, and what it printed of its configuration (`password: ...`).

        Without `source`, the lines of code in its tracebacks are left out.
        """
        text = self.text(_PAIR.sub(_masked_pair, text))
        return text if self.source else _without_code(text)

    def document(self, document: Document) -> Document:
        """A document of dataclasses, lists and dicts, with every text in it masked but for keys and identifiers."""
        masked: Document = self._inside(document)
        return masked

    def _word(self, word: str) -> str:
        assigned = _ASSIGNED.fullmatch(word)
        if assigned is not None:
            mark, name, value = assigned[1], assigned[2], assigned[3]
            if mark + name in _COMMANDS:
                return f"{mark}{name}={self._command(value)}"
            if is_secret_name(name):
                return word if _PLAIN.fullmatch(value) else f"{mark}{name}={MASK}"
        if re.search(r"[\s{]", word):
            word = _PAIR.sub(_masked_entry, word)
        return self.text(word)

    def _command(self, line: str) -> str:
        """A command line in one word, as `--exec` has it."""
        words = _split(line)
        masked = self.words(words)
        if masked == words:
            return line
        return " ".join(shlex.quote(word) if re.search(r"[\s'\"]", word) else word for word in masked)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._inside(each) for each in value]
        if isinstance(value, dict):
            return {key: self._inside(each) for key, each in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for field in fields(value):
                before = getattr(value, field.name)
                if before is None or isinstance(before, (bool, int, float)):
                    continue
                if _IDENTIFIERS.fullmatch(field.name) and not _holds_documents(before):
                    continue
                after = self._inside(before)
                if field.name in _CODE and not self.source:
                    after = ""
                elif field.name == "note" and not self.source:
                    for quoted, instead in _QUOTED:
                        after = re.sub(quoted, instead, after)
                elif field.name == "diff" and after != before:
                    after = ""  # With something masked in it, it could not be applied.
                if after != before:
                    changed[field.name] = after
            return replace(value, **changed) if changed else value
        return value


_IDENTIFIERS = re.compile(
    r"created|effect|evidence|fingerprint|fix|fixes|format|host|id|kind|label|lane|level|metric|"
    r"line_digests|mode|risk|role|rung|setting|settings|sha256|slug|status|topic|unit|verdict|version|ways"
)
"""Fields of our own vocabulary and of figures: a password that happens to be one of its words must not break it."""
_CODE = frozenset({"diff", "text"})
"""Fields that hold lines of the user's code."""
_QUOTED = (
    (r"`[^`]*` may hold \w+; s", "S"),
    (r"`[^`]*` may hold ([\w, ]+): what", r"What is unpacked may hold \1: what"),
    (
        r"`[^`]*` sets (\w+) now. If it is an option of your program, set it",
        r"If an option of your program sets \1, set it",
    ),
    (r"`[^`]*` takes its value from", "The value comes from"),
    (r"`[^`]*` is (read|called) ", r"It is \1 "),
    (r" where `[^`]*` (makes its DataLoader|comes from)", r" where its DataLoader is made"),
    (r"\bgives `[^`]*` its value", "gives it its value"),
)
"""Where notes of `edits` quote the user's code, and what they say without."""


def discretion(
    words: Sequence[str], variables: Mapping[str, str], configurations: Iterable[str] = (), *, source: bool = True
) -> Discretion:
    """What must be kept of a command line, of environment variables, and of the texts of configuration files."""
    found: set[str] = set()
    for name, value in variables.items():
        if is_secret_name(name):
            found.add(value)
        found.update(_in_urls(value))
    found.update(_in_words(words))
    for text in configurations:
        found.update(_in_text(text))
    return Discretion(_forms(found), source)


def is_secret_name(name: str) -> bool:
    """Whether a variable, an option or a key of this name holds a secret: `--hf-token`, `model.apiKey`."""
    if name in _OPEN:
        return False
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()) if part]
    if not parts or _NO_VALUE.fullmatch(parts[-1]):
        return False
    joined = "".join(parts)
    if _ALWAYS.search(joined):
        return True
    if joined.endswith("token") and parts[-1] != "token":
        return True
    if any(_NOT_SECRET.fullmatch(part) for part in parts):
        return False
    return parts[-1] == "api" or any(part in _PARTS for part in parts)


# -- what is known to be secret ----------------------------------------------------------------------------------------


def _in_words(words: Sequence[str]) -> set[str]:
    found: set[str] = set()
    before = ""
    for word in words:
        if before in _COMMANDS:
            found |= _in_words(_split(word))
        elif _expects_secret(before) and _is_value(word):
            found.add(word)
        assigned = _ASSIGNED.fullmatch(word)
        if assigned is not None and assigned[1] + assigned[2] in _COMMANDS:
            found |= _in_words(_split(assigned[3]))
        elif assigned is not None and before not in _COMMANDS and is_secret_name(assigned[2]):
            found.add(assigned[3])
        found.update(_in_text(word) if re.search(r"[\s{]", word) and before not in _COMMANDS else _in_urls(word))
        before = word
    return found


def _in_urls(text: str) -> set[str]:
    found = {user[2].partition(":")[2] or user[2] for user in _USER.finditer(text)}
    return found | {query[3] for query in _QUERY.finditer(text) if _is_query(query[2])}


def _in_text(text: str) -> set[str]:
    """Values of secret names in a configuration: YAML, JSON, TOML, INI or shell, line by line."""
    pairs = {_unquoted(pair["value"]) for pair in _PAIR.finditer(text) if is_secret_name(pair["name"].strip("\"'"))}
    return pairs | _in_urls(text)


def _forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """The values worth looking for, in the forms in which they are written elsewhere; longer ones first."""
    found: set[str] = set()
    for secret in secrets:
        value = secret.strip()
        if len(value) < SHORTEST or _PLAIN.fullmatch(value) or _FILE.fullmatch(value) or value == MASK:
            continue
        forms = {value, quote(value, safe=""), quote(value), json.dumps(value)[1:-1], repr(value)[1:-1]}
        if "\n" in value:
            forms.update(line for line in value.splitlines() if len(line) >= _SHORTEST_LINE)
        found |= forms
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _holds_documents(value: Any) -> bool:
    return is_dataclass(value) or (isinstance(value, list) and any(is_dataclass(each) for each in value))


# -- pieces ------------------------------------------------------------------------------------------------------------


def _expects_secret(option: str) -> bool:
    return _OPTION.fullmatch(option) is not None and is_secret_name(option)


def _is_value(word: str) -> bool:
    """Whether a word behind an option is its value, and no option or script of its own."""
    return word != "--" and not _OPTION.fullmatch(word) and not word.endswith(".py")


def _is_query(name: str) -> bool:
    return name.lower() in _SIGNATURES or is_secret_name(name)


def _masked_entry(pair: re.Match[str]) -> str:
    """One of a configuration that was given as an argument: its name alone decides."""
    bare = _unquoted(pair["value"])
    if not is_secret_name(pair["name"].strip("\"'")) or _PLAIN.fullmatch(bare):
        return pair[0]
    edge = pair["value"][0] if pair["value"] != bare else ""
    return f"{pair['name']}{pair['gap']}{edge}{MASK}{edge}"


def _masked_pair(pair: re.Match[str]) -> str:
    name, value = pair["name"].strip("\"'"), pair["value"]
    bare = _unquoted(value)
    # Only what can be nothing else: `token: 3` and `KeyError: 'image'` are words about training.
    if not _is_own(name) or len(bare) < SHORTEST or _PLAIN.fullmatch(bare) or _FILE.fullmatch(bare):
        return pair[0]
    if name.lower() in _VAGUE and not re.fullmatch(r"[\w+/=~-]{16,}", bare):
        return pair[0]
    if value == bare and ("." in bare or bare.isidentifier()) and not re.search(r"\d", bare):
        return pair[0]  # `token = self.token`: code, and not a value.
    edge = value[0] if value != bare else ""
    return f"{pair['name']}{pair['gap']}{edge}{MASK}{edge}"


def _is_own(name: str) -> bool:
    """Whether it is a name as programs give them, not a word of a sentence or a kind of error."""
    return is_secret_name(name) and not name.endswith(("Error", "Exception", "Warning"))


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _split(word: str) -> list[str]:
    if not re.search(r"\s", word):
        return [word]
    try:
        return shlex.split(word)
    except ValueError:
        return [word]


def _without_code(text: str) -> str:
    """Tracebacks without the lines of code in them; what is said of them stays."""
    kept: list[str] = []
    indent: int | None = None
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        if _FRAME.match(line):
            indent = depth
        elif indent is not None and line.strip() and depth > indent:
            continue
        else:
            indent = None
        kept.append(line)
    return "\n".join(kept)
