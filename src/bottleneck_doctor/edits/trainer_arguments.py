"""The edit that sets arguments of transformers' `Trainer`: in its `TrainingArguments(...)`, or where these are taken
from. Its `train()` calls the model in the library's own file, so nothing else of the user's could be edited. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.edits.call_arguments import say
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.loader_call import set_in
from bottleneck_doctor.edits.loader_target import Target, Unclear, trainer_on
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running


def set_trainer_arguments(
    drafts: Drafts, file: str, line: int, arguments: Mapping[str, object], running: Running
) -> list[Told] | None:
    """Write the arguments into `drafts`, and say what there is to say. `line`: of the call that trains, in the file as
    it is. None where no trainer of transformers is called there."""

    def found(follower: Follower) -> Target | Unclear | None:
        tree = follower.tree(file)
        return None if tree is None else trainer_on(file, tree, drafts.line(file, line), list(arguments), follower)

    def follower() -> Follower:
        return Follower(drafts, running)

    if found(follower()) is None:
        return None
    by_hand = Told(file, line, f"Give the trainer's arguments {say(arguments)}.", unfinished=True)
    return set_in(drafts, found, follower, arguments, {}) or [by_hand]
