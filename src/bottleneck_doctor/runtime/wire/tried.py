"""Which knobs the windows of a process may have: a part of the invitation.

Some knobs take samples of the loader's dataset to see whether they apply. In a process that has no use for them, they
leave that out.
"""

from __future__ import annotations

NAME = "tried"
"""Its key in the invitation: a list of names; missing where a window may have any knob."""
