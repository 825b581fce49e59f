"""Which knobs the windows of a process may have, and what an earlier process of the same program told of them: a part
of the invitation.

Some knobs take samples of the loader's dataset to see whether they apply. In a process that has no use for them, they
leave that out. And what was seen once is not looked at again: a sample that is drawn at random, or is timed beside
another program, may look otherwise in the next process.
"""

from __future__ import annotations

NAME = "tried"
"""Its key in the invitation: what was told, by name, None where nothing was; missing where a window may have any
knob."""
