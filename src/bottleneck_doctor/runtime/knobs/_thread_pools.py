"""Libraries that compute with threads of their own in each process: OpenBLAS, which NumPy and SciPy call, and OpenCV.
And torch's own threads, where something has to be done in each of them.

torch's are not limited here, because its DataLoader gives each worker one. MKL's are not either: torch tells it
the same. No package that knows such libraries can be expected in the user's environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Any, Callable, Dict, List

import torch

OPENBLAS = "openblas"
OPENCV = "opencv"
VARIABLES = {OPENBLAS: "OPENBLAS_NUM_THREADS", OPENCV: "OPENCV_FOR_THREADS_NUM"}
"""The variable that each reads when it is loaded."""

_MAPS = "/proc/self/maps"
_NAMES = [(f"{before}openblas_", f"_num_threads{after}") for before in ("", "scipy_") for after in ("", "64_", "_64")]
"""Its functions as distributions and NumPy's own packages call them."""


def threads() -> Dict[str, int]:
    """The libraries of this process that compute with more than one thread, and with how many."""
    found = {}
    blas = [int(each()) for each in _openblas("get")]
    if blas:
        found[OPENBLAS] = max(blas)
    cv2 = sys.modules.get("cv2")
    if cv2 is not None:
        with contextlib.suppress(Exception):  # A package of the user's that is called so.
            found[OPENCV] = int(cv2.getNumThreads())
    return {name: count for name, count in found.items() if count > 1}


def limit(libraries: List[str]) -> None:
    """Make these libraries compute with one thread in this process; also if they are loaded later."""
    for name in libraries:
        os.environ[VARIABLES[name]] = "1"
    if OPENBLAS in libraries:
        for each in _openblas("set"):
            each(1)
    cv2 = sys.modules.get("cv2")
    if OPENCV in libraries and cv2 is not None:
        with contextlib.suppress(Exception):
            # 0 turns threads off. 1 would wait for the pool to end, whose threads a forked worker does not have.
            cv2.setNumThreads(0)


def in_torch_threads(work: Callable[[], Any]) -> None:
    """Do `work` in the calling thread and in each of those with which torch computes for it; in the calling thread
    alone where torch does not compute with OpenMP.

    OpenMP has no other way to reach its threads than to let them work: `GOMP_parallel` is what compilers turn a
    parallel region into (https://gcc.gnu.org/onlinedocs/libgomp/Implementing-PARALLEL-construct.html), and LLVM's and
    Intel's OpenMP have it, too.
    """
    work()
    count = torch.get_num_threads()
    libraries = [each for name in ("gomp", "iomp", "libomp") for each in _loaded(name)]
    own = [each for each in libraries if f"{os.sep}torch{os.sep}" in each]
    for path in (own or libraries)[:1] if count > 1 else []:
        with contextlib.suppress(OSError, AttributeError):
            parallel = _library(path).GOMP_parallel
            does = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda ignored: work())
            parallel(does, None, ctypes.c_uint(count), ctypes.c_uint(0))


def _openblas(verb: str) -> List[Any]:
    """The function called `openblas_{verb}_num_threads` of every copy of OpenBLAS in this process. NumPy and SciPy
    bring one each."""
    functions = []
    for path in _loaded("openblas"):
        with contextlib.suppress(OSError):
            library = _library(path)
            named = [f"{begin}{verb}{end}" for begin, end in _NAMES]
            functions += [getattr(library, name) for name in named if hasattr(library, name)][:1]
    return functions


def _library(path: str) -> Any:
    """A library of this process. Raises OSError for one that is no longer loaded, which is not loaded for this."""
    return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD)


def _loaded(part: str) -> List[str]:
    """Paths of shared libraries of this process with `part` in the file's name; [] where the system does not tell."""
    try:
        with open(_MAPS, encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/")}
    except (OSError, IndexError):
        return []
    return sorted(path for path in paths if part in os.path.basename(path) and ".so" in os.path.basename(path))
