"""What comes from outside, broken in every way: a clear error, or an answer, never a traceback of ours."""

from __future__ import annotations

import copy
import gzip
import json
import re
import socket
import string
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.reports import DRAWN

from bottleneck_doctor.cli import main
from bottleneck_doctor.compare import Named, compare
from bottleneck_doctor.documents.redaction import Discretion, discretion
from bottleneck_doctor.documents.report import from_json, to_json
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.monitor import procfs
from bottleneck_doctor.profiling.device import device_profile
from bottleneck_doctor.profiling.lines import line_profile, source_lines
from bottleneck_doctor.profiling.origin import Origin
from bottleneck_doctor.profiling.raw import without_arguments
from bottleneck_doctor.profiling.sampling import sampling_profile
from bottleneck_doctor.protection import journal
from bottleneck_doctor.render import comparison, html, terminal
from bottleneck_doctor.runtime.wire import channel, messages
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.wording.durations import format_duration, parse_duration

DOCUMENTS = {name: json.loads((DRAWN[name] / f"{name}.json").read_bytes()) for name in ("pets", "gpu", "no-baseline")}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
odd_values = json_values | st.sampled_from([0, -1, 1e308, -1e308, 5e-324, 2**63, "", "\x00", "\u202e"])
whole_numbers = st.sampled_from([0, -1, 1, 10**9])
fractions = st.sampled_from([0.0, -1.0, 1e300, 1e-300])


# -- the channel -------------------------------------------------------------------------------------------------------

kinds = st.sampled_from(sorted(messages._KINDS))


@given(st.binary(max_size=200))
@example(b"null\n")
@example(b"[]\n")
@example(b'{"protocol": 1, "kind": []}\n')
@example(b"[" * 100_000)
@example(b'{"protocol": 1, "kind": "ended", "batches": ' + b"9" * 5000 + b"}")
def test_any_line_is_a_message_or_refused(line: bytes) -> None:
    try:
        messages.decode(line)
    except messages.ProtocolError:
        pass


@given(kinds, st.dictionaries(st.text(max_size=12), json_values, max_size=4))
def test_any_object_is_a_message_or_refused(kind: str, body: dict[str, Any]) -> None:
    line = json.dumps({"protocol": messages.PROTOCOL, "kind": kind, **body}).encode()
    try:
        messages.decode(line)
    except messages.ProtocolError:
        pass


@given(kinds, st.data())
def test_fields_of_another_type_are_refused(kind: str, data: st.DataObject) -> None:
    """What the supervisor reads in a message is of the type that it is said to be."""
    shape = messages._KINDS[kind]
    body = {each.name: data.draw(json_values, label=each.name) for each in fields(shape) if data.draw(st.booleans())}
    line = json.dumps({"protocol": messages.PROTOCOL, "kind": kind, **body}).encode()
    try:
        message = messages.decode(line)
    except messages.ProtocolError:
        return
    plain: dict[Any, Any] = {"int": int, "float": (int, float), "bool": bool, "str": str}
    for each in fields(shape):
        if each.type in plain:
            assert isinstance(getattr(message, each.name), plain[each.type]), each.name
    assert messages.decode(messages.encode(message)) == message


sendable = st.one_of(
    st.builds(messages.Grant, st.integers(0, 9), st.just({}), st.just("timed"), st.integers(0, 9), st.integers(0, 9)),
    st.builds(messages.Crashed, st.text(max_size=20)),
    st.builds(messages.Ended, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans()),
)


@settings(deadline=None)
@given(st.lists(sendable, max_size=5), st.binary(max_size=40), st.lists(st.integers(1, 60), max_size=20))
def test_messages_arrive_whole_however_the_line_cuts_them(sent: list[Any], after: bytes, pieces: list[int]) -> None:
    """And what follows them, whatever it is, ends the line and not the thread."""
    ours, theirs = socket.socketpair()
    ended = threading.Event()
    line = channel.Channel(theirs)
    with ours, theirs:
        line.listen(ended.set)
        stream = b"".join(map(messages.encode, sent)) + after
        for size in pieces:
            ours.sendall(stream[:size])
            stream = stream[size:]
        ours.sendall(stream)
        ours.shutdown(socket.SHUT_WR)
        assert ended.wait(10)
        heard = []
        while (message := line.receive()) is not None:
            heard.append(message)
    assert heard[: len(sent)] == sent or len(heard) <= len(sent)
    if b"\n" not in after:
        assert heard == sent


# -- report.json -------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@example(b"[" * 100_000)
@example(b'{"format": ' + b"9" * 5000 + b"}")
@example(b'{"format": 1e999}')
@example(b"\xff\xfe{}")
def test_anything_is_a_report_or_refused(data: bytes) -> None:
    with pytest.raises(DoctorError) as refused:
        from_json(data, source="report.json")
    assert refused.value.slug in ("report-unreadable", "report-too-new")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in entries:
        found += _paths(inner, (*path, key))
    return found


PATHS = {name: _paths(document) for name, document in DOCUMENTS.items()}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_damaged_report_is_drawn_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    document = copy.deepcopy(DOCUMENTS[name])
    for path in data.draw(st.lists(st.sampled_from(PATHS[name]), min_size=1, max_size=3)):
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            known = inner[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # What it was part of is gone already.
        change = data.draw(st.sampled_from(["odd", "same type", "empty", "gone"]))
        if change == "gone" and isinstance(inner, dict):
            del inner[path[-1]]
        elif change == "empty":
            inner[path[-1]] = type(known)() if known is not None else None
        elif change == "same type" and isinstance(known, (int, float)) and not isinstance(known, bool):
            inner[path[-1]] = data.draw(whole_numbers if isinstance(known, int) else fractions)
        else:
            inner[path[-1]] = data.draw(odd_values)
    try:
        result = from_json(json.dumps(document).encode(), source="report.json")
    except DoctorError:
        return
    page = html.render(result)
    assert "</html>" in page
    assert terminal.render(result, report_path=None, width=80, color=False)
    pets = from_json(json.dumps(DOCUMENTS["pets"]).encode(), source="pets.json")
    found = compare([Named("a", result), Named("b", pets)])
    assert comparison.text(found, width=None, color=False)
    assert "</html>" in comparison.html(found)


# -- profiles ----------------------------------------------------------------------------------------------------------

odd_numbers = st.sampled_from(["0", "1", "7", "99999999999", "9" * 19, "9" * 40, "9" * 5000, "-1", "x"])
raw_pieces = st.one_of(
    st.builds('process {}:"{}"'.format, odd_numbers, st.text(max_size=12)),
    st.builds("thread ({}): {}".format, odd_numbers, st.sampled_from(["MainThread", "x", ""])),
    st.builds("{} ({}:{})".format, st.text(max_size=8), st.sampled_from(["/a.py", "worker.py", ""]), odd_numbers),
    st.sampled_from(["_worker_loop (torch/utils/data/_utils/worker.py:1)", "get (queues.py:3)"]),
    st.text(max_size=12),
)
raw_lines = st.builds(
    lambda pieces, count: ";".join(pieces) + f" {count}", st.lists(raw_pieces, max_size=5), odd_numbers
)
raw_files = st.lists(raw_lines, max_size=6).map(lambda lines: "\n".join(lines).encode(errors="surrogatepass"))


@settings(deadline=None)
@given(st.binary(max_size=200) | raw_files)
@example(b"f (a.py:1) " + b"9" * 30)
@example(b"f (a.py:" + b"9" * 5000 + b") 1")
def test_any_recording_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "py-spy.raw"
    path.write_bytes(content)
    for _ in range(2):
        try:
            profile = sampling_profile([path], rate=100, seconds=1.0, speedscope_file=path.with_suffix(".json"))
            json.loads(path.with_suffix(".json").read_bytes())
            for number in (number for tree in profile.trees.values() for number in (tree.count, tree.line)):
                assert 0 <= number < 2**63
        except DoctorError as error:
            if error.slug not in ("raw-empty", "raw-unreadable"):
                raise
        without_arguments(path)


trace_events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "M"]) | odd_values,
        "cat": st.sampled_from(["kernel", "user_annotation", "cuda_runtime", "cpu_op", "gpu_memcpy"]) | odd_values,
        "name": st.sampled_from(["ProfilerStep#0", "cudaStreamSynchronize", "ampere_sgemm"]) | odd_values,
        "ts": st.integers(0, 99) | odd_values,
        "dur": st.integers(0, 99) | odd_values,
        "args": st.dictionaries(
            st.sampled_from(["External id", "correlation", "device", "blocks per SM", "est. achieved occupancy %"]),
            st.integers(0, 3) | odd_values,
        )
        | odd_values,
    },
)
good_step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "ts": 0, "dur": 50}
good_kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 5}


@settings(deadline=None)
@example([{**good_step, "dur": 0}, {**good_kernel, "ts": 0, "dur": 0}], False, False, b"")
@example([{"ph": "X", "cat": "cuda_runtime", "ts": 1, "dur": 1, "args": {"correlation": []}}], True, False, b"")
@example([{**good_kernel, "args": {"device": {}, "External id": [1]}}], True, False, b"")
@example([{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "args": {"External id": {}}}], True, False, b"")
@example([{**good_step, "name": ["ProfilerStep#0"]}, {**good_kernel, "name": {}}], True, True, b"")
@example([{**good_kernel, "ts": 1e308, "dur": 1e308}], True, False, b"")
@example([], True, True, b"\xff" * 60)
@example([{**good_step, "ph": "X", "dur": -50}, {**good_kernel, "ts": -9}], False, False, b"")
@given(st.lists(trace_events, max_size=6), st.booleans(), st.booleans(), st.binary(max_size=20))
def test_any_trace_is_read_or_left_out(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any], sound: bool, packed: bool, damage: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "trace.json"
    whole = [good_step, good_kernel, *events] if sound else events
    data = json.dumps({"traceEvents": whole}).encode() + damage
    path.write_bytes(gzip.compress(data)[: -len(damage) or None] + damage if packed else data)
    detail = {"steps": 1, "seconds": 1.0, "device": True, "operators": [["mm", 1, 2.0, 3.0]], "waiting": "w"}
    profile = device_profile(detail, path, [])
    assert profile.operators[0].name == "mm"


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_any_source_file_has_lines(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "source.py"
    path.write_bytes(content)
    assert isinstance(source_lines(str(path)), list)
    function = {"name": "f", "path": str(path), "first_line": 1, "end_line": 9, "seconds": 0.0, "lines": [[3, 1, 0.0]]}
    assert line_profile({"steps": 1, "functions": [function]}, []).listings[0].lines


frame_values = odd_values | st.just("a")
stack_frames = st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "filename", "line"), frame_values))
stack_threads = st.fixed_dictionaries(
    {}, optional={"os_thread_id": st.integers(0, 2), "frames": st.lists(stack_frames, max_size=3) | odd_values}
)


@given(odd_values | st.lists(stack_threads, max_size=3))
@example([{"frames": [{"name": "f", "filename": 3, "line": 1}]}])
@example([{"frames": [{"name": "f", "filename": "a", "line": 1e999}]}])
@example([{"frames": [{"name": [], "filename": "a", "line": 1}]}])
def test_any_dump_of_stacks_is_read_or_none(threads: Any) -> None:
    stack = autopsy.read(threads, 1, False, Origin())
    assert stack is None or all(isinstance(frame.function, str) for frame in stack.frames)


# -- the system --------------------------------------------------------------------------------------------------------

proc_words = st.lists(
    st.sampled_from(
        [b"cpu", b"some", b"total=3", b"0", b"17", b"-1", b"max", b"kB", b":", b"(a)", b"x" * 9, b"9" * 5000]
    ),
    max_size=45,
)
PARSERS: list[Any] = [procfs.stat, procfs.storage_bytes, procfs.switches, procfs.table, procfs.pairs, procfs.cpu_times]
PARSERS += [procfs.last_pid, procfs.pressure_seconds, procfs.group_paths, procfs.throttling, procfs.limit_bytes]


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80) | proc_words.map(b" ".join) | proc_words.map(b"\n".join))
def test_any_text_of_the_kernel_is_read_or_a_gap(parse: Any, text: bytes) -> None:
    try:
        parse(text)
        procfs.disk_bytes(text, ["sda"])
    except procfs.Malformed:
        pass


names = st.text("ab.\0\u00e9", min_size=1, max_size=4).map(lambda name: name.replace("..", "a"))
record_values = json_values | names
records = st.fixed_dictionaries(
    {"op": st.sampled_from(sorted(journal._STEPS)) | st.sampled_from(["unsaved", "program", "gone"]), "path": names},
    optional=dict.fromkeys(("device", "inode", "mode", "uid", "gid", "times"), record_values),
)


@settings(deadline=None)
@given(st.lists(records | json_values, max_size=6), st.binary(max_size=30), st.lists(names, max_size=2))
def test_any_journal_is_undone_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], cut: bytes, kept: list[str]
) -> None:
    """Nothing outside of what it names is touched, and what can't be undone is said."""
    folder = tmp_path_factory.mktemp("journal")
    inside = folder / "theirs"
    inside.mkdir()
    bystander = folder / "bystander"
    bystander.write_text("as it was")
    for record in told:
        if isinstance(record, dict) and isinstance(record.get("path"), str):
            record["path"] = f"{inside}/{record['path']}"
            record["source"], record["copy"], record["target"] = f"{inside}/b", f"{inside}/a", f"{inside}/ab"
    lines = [json.dumps(record).encode() for record in told]
    (folder / journal.JOURNAL).write_bytes(b"\n".join([*lines, cut.replace(b"{", b"")]))
    found = journal.read(folder)
    journal.made(found)
    journal.undo(found, frozenset(f"{inside}/{name}" for name in kept))
    assert bystander.read_text() == "as it was"


# -- the command line --------------------------------------------------------------------------------------------------


@given(st.text(max_size=12) | st.text("0123456789.hms e-", max_size=8))
@example("9" * 5000)
def test_any_text_is_a_length_of_time_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert 0 < seconds < float("inf")
    assert format_duration(seconds)


OPTIONS = re.findall(
    r"\S+",
    """
-m -o --budget --only --skip --sessions --seed
--launch --listen --exec --python --rate -v -q --no-source --
""",
)
COMMANDS = ["run", "baseline", "report", "compare", "hot", "flame", "fixes"]
words = (
    st.sampled_from(OPTIONS)
    | st.text(string.printable.replace("/", "") + "\udcff\u202e", max_size=10)
    | st.just("a" * 300)
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(COMMANDS), st.lists(words, max_size=4))
@example("run", ["a" * 300])
@example("run", ["-o", "a" * 300, "missing.py"])
@example("run", ["--exec", "'"])
@example("report", ["a" * 5000])
def test_any_words_are_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, given: list[str]
) -> None:
    """None of these names a file that is there, so that nothing is ever started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    if "-m" in given or "--module" in given:
        given = [word for word in given if word not in ("-m", "--module")]
    code = main([command, *given, *(["missing.py"] if command in ("run", "baseline") else [])])
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    if code != Exit.DONE:
        assert code == Exit.USAGE, (code, said.err)
        assert said.err.startswith("doctor: ")


# -- secrets -----------------------------------------------------------------------------------------------------------

secrets = st.text(string.ascii_letters + string.digits + "+/=!$% \u00e9", min_size=8, max_size=24).filter(
    lambda text: text.strip() == text and not text.isdigit() and "/" not in text[:2] and not text.startswith("-")
)


@given(secrets, st.text(max_size=20), st.text(max_size=20))
def test_a_known_secret_is_in_no_text(secret: str, before: str, after: str) -> None:
    known = discretion(["train.py", "--password", secret], {})
    assert secret not in known.text(f"{before}{secret}{after}")
    assert secret not in " ".join(known.words(["train.py", "--password", secret, f"--note={secret}"]))


@given(st.lists(st.text(max_size=20), max_size=6), st.text(max_size=60))
def test_any_words_and_texts_can_be_masked(given: list[str], text: str) -> None:
    for known in (Discretion(), discretion(given, {"A_TOKEN": text}, [text], source=False)):
        assert len(known.words(given)) == len(given)
        known.output(text)


def test_masking_keeps_every_golden_document_readable() -> None:
    known = discretion(["--token", "train"], {"MY_SECRET": "resnet", "PASSWORD": "python"})
    for document in DOCUMENTS.values():
        masked = known.document(from_json(json.dumps(document).encode(), source="golden"))
        assert from_json(to_json(masked), source="masked") == masked
        assert "</html>" in html.render(masked)
