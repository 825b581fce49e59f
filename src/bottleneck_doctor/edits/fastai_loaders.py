"""The edit of the call that makes fastai's DataLoaders, which hands its arguments on to them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.drafts import Drafts
from bottleneck_doctor.edits.loader_target import FASTAI_TAKES
from bottleneck_doctor.edits.named_call import set_named
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.step import Outcome, Step
from bottleneck_doctor.knobs import Argument
from bottleneck_doctor.wording import words

LIBRARY = "fastai"
CALLS = (
    "dataloaders",
    "from_csv",
    "from_dblock",
    "from_df",
    "from_dsets",
    "from_folder",
    "from_label_func",
    "from_lists",
    "from_name_func",
    "from_name_re",
    "from_path_func",
    "from_path_re",
)
"""What makes them: `ImageDataLoaders.from_folder(...)`, `block.dataloaders(...)`."""


def fastai_step(keywords: Setting, without: Mapping[str, object], device: str, running: Running) -> Step:
    """The step that gives the one call that makes DataLoaders these arguments."""
    said = words.setting_code(keywords, device)
    edit = Argument(
        said=said,
        otherwise=f"pass {said} where fastai's DataLoaders are made, as in `ImageDataLoaders.from_folder(...)`",
        calls=CALLS,
        given=tuple(keywords.items()),
        without={name: value for name, value in without.items() if name in FASTAI_TAKES},
    )

    def step(drafts: Drafts) -> Outcome:
        for file in running.files if set(keywords) <= set(FASTAI_TAKES) else ():
            told = set_named(drafts, file, edit, running) if LIBRARY in (drafts.text(file) or "") else []
            if told:
                return Outcome(told)
        return Outcome(elsewhere=[edit.otherwise])

    return step
