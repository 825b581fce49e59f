"""The user's lines that copy to the device."""

from __future__ import annotations

import re

TO_DEVICE = re.compile(r"\.to\((?!torch\.(float|half|bfloat|double|int|long|uint))|\.cuda\(")
"""Lines that copy to a device; one that names a type alone converts."""
