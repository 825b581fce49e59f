"""Reading py-spy's raw files: exact small inputs, what is left out, and files that are something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.profiling.raw import RawProfile, read, without_arguments

LOOP = "_worker_loop (/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py:349)"
QUEUE = "/usr/lib/python3.11/multiprocessing/queues.py"


def stacks(profile: RawProfile) -> dict[tuple[int | None, str], int]:
    """Counts by process and stack: `a:1>b:2`, with `loop>` before a worker's."""
    found = {}
    for process in profile.processes:
        for mark, root in (("", process.root), ("loop>", process.loop_root)):
            if root is None:
                continue
            below = profile.tree.inherited([root])
            for node, count in enumerate(profile.tree.counts):
                if count and below[node] == root:
                    frames = [profile.frames[number] for number in profile.tree.stack(node)]
                    names = ">".join(f"{frame.name}:{frame.line}" for frame in frames)
                    found[process.pid, mark + names] = count
    return found


def write_text(folder: Path, text: str | bytes) -> Path:
    path = folder / "spy.raw"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_plain_recording(tmp_path: Path) -> None:
    path = write_text(tmp_path, "main (train.py:3);step (train.py:9) 5\nmain (train.py:3) 2\nmain (train.py:4) 1\n")
    profile = read([path])
    assert stacks(profile) == {(None, "main:3>step:9"): 5, (None, "main:3"): 2, (None, "main:4"): 1}
    assert profile.samples == 8
    assert profile.malformed == 0
    assert profile.frames[0].function == profile.frames[2].function, "one function at two lines"


def test_main_and_workers_are_told_apart(tmp_path: Path) -> None:
    main = 'process 10:"python train.py"'
    worker = f'{main};process 11:"python train.py"'
    path = write_text(
        tmp_path,
        f"{main};thread (10): MainThread;main (train.py:3) 7\n"
        f"{worker};thread (11): MainThread;main (train.py:3);fork (x.py:1);{LOOP};__getitem__ (train.py:20) 4\n"
        f"{worker};thread (11): MainThread;main (train.py:3);fork (x.py:1) 2\n",
    )
    profile = read([path])
    assert stacks(profile) == {
        (10, "main:3"): 7,
        (11, "loop>_worker_loop:349>__getitem__:20"): 4,
        (11, "main:3>fork:1"): 2,
    }
    first, second = profile.processes
    assert (first.is_worker, second.is_worker) == (False, True)
    assert second.parent is first
    assert second.command == "python train.py"


@pytest.mark.parametrize(
    "stack",
    [
        "thread (12): Thread-1 (_pin_memory_loop);Thread._bootstrap (/usr/lib/python3.11/threading.py:1002);x (a.py:1)",
        "_bootstrap (threading.py:1002);run (threading.py:9)",
        "thread (0x7F12): QueueFeederThread;_feed (multiprocessing/queues.py:231)",
        'process 10:"python";thread (12);forward (a.py:1)',
    ],
)
def test_helper_threads_do_not_count(tmp_path: Path, stack: str) -> None:
    profile = read([write_text(tmp_path, f"{stack} 40\nmain (train.py:1) 1\n")])
    assert profile.samples == 1
    assert profile.helper_samples == 40


@pytest.mark.parametrize(
    "thread", ["thread (10): MainThread", "thread (10)", "thread (0x7F12): MainThread", "thread (0x7F12)"]
)
def test_main_threads_count(tmp_path: Path, thread: str) -> None:
    profile = read([write_text(tmp_path, f'process 10:"python";{thread};main (train.py:1) 3\n')])
    assert stacks(profile) == {(10, "main:1"): 3}


def test_guest_and_import_system_are_taken_out(tmp_path: Path) -> None:
    guest = "/env/lib/python3.11/site-packages/bottleneck_doctor/runtime"
    path = write_text(
        tmp_path,
        f"main (train.py:3);next_ ({guest}/loader.py:60);Guest._next ({guest}/guest.py:70);fetch (torch/x.py:1) 3\n"
        f"main (train.py:3);Guest._next ({guest}/guest.py:70) 2\n"
        f"main (train.py:3);Server.request ({guest}/serve.py:9);Guest._ask ({guest}/guest.py:16);recv (s.py:1) 9\n"
        "main (train.py:1);_find_and_load (<frozen importlib._bootstrap>:1176);<module> (lib.py:2) 1\n",
    )
    profile = read([path])
    assert stacks(profile) == {(None, "main:3>fetch:1"): 3, (None, "main:3"): 2, (None, "main:1><module>:2"): 1}


def test_a_waiting_worker_is_counted_apart(tmp_path: Path) -> None:
    path = write_text(
        tmp_path,
        f"{LOOP};Queue.get ({QUEUE}:113);select (selectors.py:415) 6\n"
        f"{LOOP};get ({QUEUE}:113) 1\n{LOOP};Queue.put ({QUEUE}:96) 2\n",
    )
    profile = read([path])
    assert profile.waiting_samples == 7
    assert stacks(profile) == {(None, "loop>_worker_loop:349>Queue.put:96"): 2}


def test_semicolons_quotes_and_line_breaks_in_a_command(tmp_path: Path) -> None:
    command = 'python -c import a;b = "x 5"\nprint(1) 7\n run'
    path = write_text(tmp_path, f'process 10:"{command}";main (my;odd (copy)/train.py:3) 4\nmain (b.py:1) 2\n')
    profile = read([path])
    assert stacks(profile) == {(10, "main:3"): 4, (None, "main:1"): 2}
    assert profile.processes[0].command == command
    assert profile.frames[0].path == "my;odd (copy)/train.py"
    assert profile.malformed == 0


def test_native_frames_have_no_line(tmp_path: Path) -> None:
    path = write_text(
        tmp_path, "main (t.py:3);at::native::add(at::Tensor const&) (libtorch_cpu.so);[x] (libc.so.6) 4\n"
    )
    profile = read([path])
    path = write_text(tmp_path, "{lambda()#1}::operator() (t.so);<svg> (t.py:1) 2\n")
    assert read([path]).samples == 2, "what begins like another format is none"
    assert [(frame.name, frame.path, frame.line) for frame in profile.frames] == [
        ("main", "t.py", 3),
        ("at::native::add(at::Tensor const&)", "libtorch_cpu.so", 0),
        ("[x]", "libc.so.6", 0),
    ]


def test_lines_that_are_no_stacks_are_counted_and_said(tmp_path: Path) -> None:
    path = write_text(tmp_path, "main (t.py:3) 4\n\nnonsense\nmain;step 3\nmain (t.py:3) x\nmain (t.py:3) 1\r\n")
    profile = read([path])
    assert stacks(profile) == {(None, "main:3"): 5}
    assert profile.malformed == 3
    assert profile.first_malformed == "spy.raw, line 3"


@pytest.mark.parametrize(
    ("content", "slug", "said"),
    [
        (b"", "raw-empty", "empty"),
        (b"\x7fELF\0\0\0 12\n", "raw-unreadable", "binary"),
        (b'<?xml version="1.0"?>\n<svg></svg>\n', "raw-unreadable", "SVG"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "raw-unreadable", "JSON"),
        (b"hello there\nand more of it 5\n", "raw-unreadable", "not a raw recording of py-spy."),
        (b"\xff\xfe\xfd 1\n", "raw-unreadable", "not a raw recording of py-spy."),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, slug: str, said: str) -> None:
    with pytest.raises(DoctorError) as raised:
        read([write_text(tmp_path, content)])
    assert raised.value.slug == slug
    assert said in raised.value.sentence


@pytest.mark.parametrize("name", ["missing.raw", "."])
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DoctorError) as raised:
        read([tmp_path / name])
    assert raised.value.slug == "raw-missing"


def test_an_endless_line_is_no_stack(tmp_path: Path) -> None:
    profile = read([write_text(tmp_path, "x" * (3 << 20) + "\nmain (t.py:1) 1\n")])
    assert profile.samples == 1
    assert profile.malformed >= 1


def test_one_pid_on_two_machines_is_two_processes(tmp_path: Path) -> None:
    files = []
    for node in ("node0", "node1"):
        files.append(tmp_path / f"{node}.raw")
        files[-1].write_text('process 10:"python";main (t.py:1) 3\n')
    profile = read(files)
    assert [process.pid for process in profile.processes] == [10, 10]
    assert profile.samples == 6
    assert len(profile.frames) == 1


names = st.text(st.characters(exclude_characters=';\r\n"() :\0', exclude_categories=["C", "Z"]), min_size=1, max_size=8)
paths = st.text(st.characters(exclude_characters='\r\n\0"()', exclude_categories=["C", "Z"]), min_size=1, max_size=12)
plain_frames = st.tuples(names, paths.filter(lambda path: "importlib" not in path), st.integers(1, 10**6))


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(plain_frames, min_size=1, max_size=6), st.integers(1, 99)), min_size=1, max_size=9))
def test_every_written_sample_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[list[tuple[str, str, int]], int]]
) -> None:
    text = ""
    expected: dict[str, int] = {}
    for frames, count in lines:
        text += ";".join(f"{name} ({path}:{line})" for name, path, line in frames) + f" {count}\n"
        key = ">".join(f"{name}:{line}" for name, _, line in frames)
        expected[key] = expected.get(key, 0) + count
    profile = read([write_text(tmp_path_factory.mktemp("raw"), text)])
    assert profile.malformed == 0
    assert profile.samples == sum(expected.values())
    found: dict[str, int] = {}
    for node, count in enumerate(profile.tree.counts):
        if count:
            seen = [profile.frames[number] for number in profile.tree.stack(node)]
            key = ">".join(f"{frame.name}:{frame.line}" for frame in seen)
            found[key] = found.get(key, 0) + count
    assert found == expected


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_anything_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = write_text(tmp_path_factory.mktemp("raw"), content)
    slug = ""
    try:
        read([path])
    except DoctorError as error:
        slug = error.slug
    assert slug in ("", "raw-empty", "raw-unreadable")


def test_commands_are_told_up_to_the_script_only(tmp_path: Path) -> None:
    path = tmp_path / "py-spy.raw"
    path.write_bytes(
        b'process 12:"python -X dev train.py --token hidden";process 13:"python -m pkg.load key=hidden;q "x" y";'
        b"thread (13): MainThread;f (a.py:3) 4\n"
        b"process 14;thread (14): MainThread;f (a.py:3) 1\n"
        b'process 15:"python -c hidden\nhidden too";thread (15): MainThread;g (b.py:1) 3\n'
        b"hidden hidden 3\n"
    )
    without_arguments(path)
    assert path.read_text().splitlines() == [
        'process 12:"python train.py";process 13:"python -m pkg.load";thread (13): MainThread;f (a.py:3) 4',
        "process 14;thread (14): MainThread;f (a.py:3) 1",
        'process 15:"python -c";thread (15): MainThread;g (b.py:1) 3',
    ]
    assert [entry.name for entry in tmp_path.iterdir()] == ["py-spy.raw"]
    profile = read([path])
    assert (profile.samples, profile.malformed) == (8, 0)
