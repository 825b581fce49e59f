"""The heap of this process, as glibc keeps it (mallopt(3)): whether large blocks that are freed stay in it.

glibc asks the kernel for each large block by itself, and gives it back when it is freed. How large a block has to be
for that, it learns from the blocks that are freed, and any call of `mallopt` ends the learning. So what it has learnt
is found out before the first call, by blocks of our own, and is put back after it. No function lets it go on learning.
So that is written where glibc keeps it, if all that stands around it there is what it has to be.

Blocks that were kept lie free within the heap then, and a program as written would have none there: it would ask the
kernel for them. So we give their pages back and hold the blocks themselves, without pages, until they are wanted again.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Iterator, List, Optional, Tuple

from .originals import open_file

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4
"""Parameters of `mallopt`, as malloc.h numbers them."""
LARGEST_KEPT = 1 << 30
"""Bytes of the largest block that stays in the heap, as in the variables that a user sets."""
_PAD = 64 << 20
_USUAL_PAD = 128 << 10
_USUAL = 128 << 10
"""Bytes from which on a block is asked of the kernel, and of free memory at the heap's end that is given back, before
anything was learnt."""
_MOST_LEARNT = 32 << 20
"""glibc learns no larger size than this."""
_USUAL_MOST = 65536
"""Blocks that the kernel gives by themselves at most."""
_NEAR = 4096
_TRIES = 4
_FREE, _GROWN, _MAPPED, _NOWHERE = "free in the heap", "the heap has grown", "asked of the kernel by itself", "nowhere"
_MAPPED_BIT = 2
"""A bit of the word before each block, which holds its size: the block was asked of the kernel by itself."""
_WORD = ctypes.sizeof(ctypes.c_size_t)
_ODD = (1_999_999_973, 131_101, 1_073_741_789)
"""Values of the first three parameters that nothing else has, and that do no harm: `trim_threshold`, `top_pad` and
`mmap_threshold` of `mp_` in glibc's malloc.c."""
_ODD_MOST = 65_521
_BEHIND = 32
"""The number of blocks stands at most so many integers behind them."""
_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Told(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


class _ToldInInts(ctypes.Structure):
    """Of releases before 2.33. A large heap is told wrong, but no less so twice in a row."""

    _fields_ = [(name, ctypes.c_int) for name in _FIELDS.split()]


class Refused(Exception):
    """The heap can't be switched here; the text says why."""


def obstacle() -> str:
    """Why the heap of this process can't be switched, as the end of a sentence; "" if it can."""
    try:
        libc, here = ctypes.CDLL("libc.so.6"), ctypes.CDLL(None)
        libc.mallopt, libc.malloc_trim  # noqa: B018  # They are looked up.
        own = [ctypes.cast(each.malloc, ctypes.c_void_p).value for each in (libc, here)]
    except (OSError, AttributeError):
        return "the memory of this process does not come from glibc"
    return "" if own[0] == own[1] else "another memory allocator than glibc's is loaded here"


def of_this_process() -> Heap:
    """The one heap that this process has. Needs that there is no `obstacle`."""
    if not _heaps:
        _heaps.append(Heap())
    return _heaps[0]


class Heap:
    """What is known and held of the heap; see `of_this_process`."""

    def __init__(self) -> None:
        self._libc: Any = ctypes.CDLL("libc.so.6")
        self._libc.malloc.restype, self._libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._libc.free.restype, self._libc.free.argtypes = None, [ctypes.c_void_p]
        self._libc.malloc_trim.argtypes = [ctypes.c_size_t]
        self._ask = getattr(self._libc, "mallinfo2", self._libc.mallinfo)
        self._ask.restype = _Told if hasattr(self._libc, "mallinfo2") else _ToldInInts
        self._learnt: Optional[int] = None
        self._place: Optional[_Place] = None
        self._held: List[int] = []

    def keep(self) -> None:
        """Keep large blocks from now on. Raises `Refused`."""
        if self._place is not None:
            self._learnt = self._place.learnt()
        elif self._learnt is None:
            self._set(_TOP_PAD, _USUAL_PAD)  # Ends the learning, and changes nothing else.
            self._learnt = self._find_out()
            self._place = self._find_place()
        while self._held:
            self._libc.free(self._held.pop())
        if not self._set(_MMAP_THRESHOLD, LARGEST_KEPT):
            self.give_back()
            raise Refused("glibc is too old here to keep blocks of this size")
        self._set(_TRIM_THRESHOLD, -1)
        self._set(_TOP_PAD, _PAD)

    def keeps(self) -> bool:
        """Whether a large block is taken from the heap."""
        block, origin = self._take(2 * _MOST_LEARNT)
        self._libc.free(block)
        return origin in (_FREE, _GROWN)

    def give_back(self) -> None:
        """Be as before `keep`. Must not raise."""
        learnt = self._learnt
        if learnt is None:
            return
        self._set(_MMAP_THRESHOLD, learnt)
        self._set(_TRIM_THRESHOLD, 2 * learnt if learnt > _USUAL + _NEAR else _USUAL)
        self._set(_TOP_PAD, _USUAL_PAD)
        self._libc.malloc_trim(0)
        self._hold_what_is_free(learnt)
        if self._place is not None:
            self._place.learn_on()

    def _set(self, parameter: int, value: int) -> bool:
        return bool(self._libc.mallopt(parameter, value))

    def _size(self) -> int:
        return int(self._ask().arena)

    def _take(self, size: int) -> Tuple[Optional[int], str]:
        """A block of this size, and where it comes from: `_FREE`, `_GROWN` or `_MAPPED`, or `_NOWHERE`."""
        before = self._size()
        block: Optional[int] = self._libc.malloc(size)
        if block is None:
            return None, _NOWHERE
        if ctypes.c_size_t.from_address(block - _WORD).value & _MAPPED_BIT:
            return block, _MAPPED
        return block, _FREE if self._size() == before else _GROWN

    def _find_out(self) -> int:
        """The smallest size, in bytes, of a block that is asked of the kernel by itself."""
        last = -1
        for _ in range(_TRIES):  # Other threads may take memory meanwhile, and seem to be us.
            found = self._bisected()
            if abs(found - last) <= _NEAR:
                return found
            last = found
        raise Refused("other threads took so much memory that the heap could not be looked at")

    def _find_place(self) -> Optional[_Place]:
        """Where glibc keeps its parameters; None where that is not sure."""
        for parameter, value in zip((_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX), (*_ODD, _ODD_MOST)):
            self._set(parameter, value)
        try:
            function = ctypes.cast(self._libc.mallopt, ctypes.c_void_p).value or 0
            places = [place for span in _written_by(function) for place in _places_in(*span)]
            return places[0] if len(places) == 1 and places[0].mapped() <= int(self._ask().hblks) else None
        except (OSError, ValueError):
            return None
        finally:
            self._set(_MMAP_MAX, _USUAL_MOST)

    def _bisected(self) -> int:
        small, large = _NEAR, _MOST_LEARNT
        while large - small > _NEAR:
            middle = (small + large) // 2
            if self._is_asked_for(middle):
                large = middle
            else:
                small = middle
        return large

    def _is_asked_for(self, size: int) -> bool:
        """Whether the kernel is asked for a block of this size where the heap has no free one."""
        held: List[Optional[int]] = []
        try:
            while True:
                block, origin = self._take(size)
                held.append(block)
                if origin != _FREE:
                    return origin == _MAPPED
        finally:
            for block in held:
                self._libc.free(block)

    def _hold_what_is_free(self, least: int) -> None:
        """Take the free blocks of the heap that have `least` bytes or more. Their pages were given back."""
        size = 1 << max(0, int(self._ask().fordblks)).bit_length()
        while size >= least:
            block, origin = self._take(size)
            if block is not None and origin == _FREE:
                self._held.append(block)
            else:
                self._libc.free(block)
                size //= 2


class _Place:
    """Where glibc keeps its parameters. `words`: the address of the first of them. `counts`: that of four integers:
    blocks that the kernel gave by themselves, how many it may give, the most that it gave, and whether learning has
    ended."""

    def __init__(self, words: int, counts: int) -> None:
        self._words = (ctypes.c_size_t * 3).from_address(words)
        self._counts = (ctypes.c_int * 4).from_address(counts)

    def is_sure(self) -> bool:
        """Whether these are the parameters, with `_ODD_MOST` among them."""
        mapped, allowed, most, ended = self._counts
        return allowed == _ODD_MOST and 0 <= mapped <= most <= 1 << 24 and ended == 1

    def mapped(self) -> int:
        return self._counts[0]

    def learnt(self) -> int:
        return min(_MOST_LEARNT, self._words[2])

    def learn_on(self) -> None:
        self._counts[3] = 0


def _written_by(function: int) -> List[Tuple[int, int]]:
    """The first and the last address of what the library of a function may write."""
    spans = []
    with open_file("/proc/self/maps", encoding="utf-8", errors="replace") as handle:
        for line in handle:
            place, rights, _, _, _, *path = line.split(None, 5)
            start, end = (int(part, 16) for part in place.split("-"))
            spans.append((start, end, rights, path[0].strip() if path else ""))
    (library,) = {path for start, end, _, path in spans if start <= function < end and path}
    return [(start, end) for start, end, rights, path in spans if path == library and rights.startswith("rw")]


def _places_in(start: int, end: int) -> Iterator[_Place]:
    """The places between two addresses that hold `_ODD`, and behind it what has to stand there."""
    held, odd = ctypes.string_at(start, end - start), struct.pack("@3N", *_ODD)
    at = held.find(odd)
    while at >= 0:
        for number in range(_BEHIND):
            behind = at + len(odd) + number * ctypes.sizeof(ctypes.c_int)
            if behind + 4 * ctypes.sizeof(ctypes.c_int) <= len(held):
                place = _Place(start + at, start + behind)
                if place.is_sure():
                    yield place
        at = held.find(odd, at + 1)


_heaps: List[Heap] = []
