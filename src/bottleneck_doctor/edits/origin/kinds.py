"""The kinds of origin, in the order in which they are asked. Each gets a call or a parameter and says what it stands
for, or None where it is none of its own."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from bottleneck_doctor.edits.origin import (
    argparse_option,
    class_options,
    click_option,
    document,
    function,
    hydra_config,
    instance,
    mapping,
    typed_options,
)
from bottleneck_doctor.edits.origin.definition import Definition, Expression
from bottleneck_doctor.edits.origin.follower import Follower, Parameter
from bottleneck_doctor.edits.origin.mapping import Entries

__all__ = ["CALLS", "PARAMETERS", "Entries"]

CALLS: tuple[Callable[[Expression, cst.Call, Follower], Definition | None], ...] = (
    argparse_option.of_call,
    typed_options.of_call,
    document.of_call,
    mapping.of_call,
    instance.of_call,
    function.of_call,
)
PARAMETERS: tuple[Callable[[Parameter, Follower], Definition | None], ...] = (
    hydra_config.of_parameter,
    click_option.of_parameter,
    instance.of_parameter,
    function.of_parameter,
    class_options.of_parameter,
    instance.of_annotation,
)
