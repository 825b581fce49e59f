"""Runs at the start of every Python process of an examined command, because its folder is in PYTHONPATH.

It removes itself from `sys.path` and `sys.modules`, lets the guest in, and then runs the `sitecustomize` that would
have run without doctor.
"""

import importlib
import importlib.util
import os
import sys


def _tell_failure() -> None:
    """Write why the guest could not begin into a file for the supervisor: there may be no other way to reach it."""
    if os.environ.get("BOTTLENECK_DOCTOR_DEBUG"):
        raise
    import json  # Only here: this file runs at the start of every process.
    import traceback

    try:
        path = "%s-%d" % (json.loads(os.environ["BOTTLENECK_DOCTOR"])["failed"], os.getpid())
        with open(path, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
    except (KeyError, TypeError, ValueError, OSError):  # Nobody invited us, or it was from another host.
        pass


def _enter() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        runtime = os.path.dirname(here)
        spec = importlib.util.spec_from_file_location(
            "_bottleneck_doctor_guest",
            os.path.join(runtime, "__init__.py"),
            submodule_search_locations=[runtime],
        )
        if spec is not None and spec.loader is not None:
            package = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = package
            spec.loader.exec_module(package)
            importlib.import_module(spec.name + ".bootstrap").enter(_tell_failure)
    except Exception:  # The user's program must start whatever is wrong with us.
        _tell_failure()
    try:
        importlib.import_module("sitecustomize")  # the user's own, now that ours is out of the way
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # importlib takes the module it has just run out of `sys.modules` and puts it back: one must be there.
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_enter()
