"""Where lines of a file stand after edits."""

from __future__ import annotations

from bottleneck_doctor.edits.drafts import Drafts, OneFile

WRITTEN = "import torch\n\nloader = DataLoader(data, batch_size=2)\nfor batch in loader:\n    train(batch)\n"


def test_a_changed_line_is_found_below_what_was_put_above_it() -> None:
    drafts = Drafts(OneFile(WRITTEN))
    defined = "class Kept:\n    def __len__(self):\n        return len(self.inputs)\n\n\n"
    drafts.write(
        OneFile.path, WRITTEN.replace("loader = DataLoader(data,", f"{defined}loader = DataLoader(Kept(data),")
    )
    assert [drafts.line(OneFile.path, line) for line in (1, 3, 4)] == [1, 8, 9]
    text = drafts.text(OneFile.path)
    assert text is not None
    drafts.write(OneFile.path, text.replace("    train(batch)", "    with autocast():\n        train(batch)"))
    assert [drafts.line(OneFile.path, line) for line in (3, 5)] == [8, 11]
    assert drafts.line(OneFile.path, 99) == 99


def test_lines_that_are_left_out_stand_where_they_would_be() -> None:
    drafts = Drafts(OneFile(WRITTEN))
    drafts.write(OneFile.path, WRITTEN.replace("import torch\n\n", ""))
    assert [drafts.line(OneFile.path, line) for line in (1, 3)] == [1, 1]
