"""Draw docs/images/report.png in a headless Chromium: `python docs/make_screenshot.py [report.json]`.

Without an argument it draws the golden report of examples/pets, which was recorded (tests/golden/record.py).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.render import html

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "tests" / "golden" / "pets.json"
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE = (1280, 1180)


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("needs chromium, chromium-browser or google-chrome on the PATH")
    PICTURE.parent.mkdir(exist_ok=True)
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULT
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html.render(from_json(source.read_bytes(), source=str(source))), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        options += ["--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        options += [f"--screenshot={PICTURE}", f"--window-size={SIZE[0]},{SIZE[1]}", page.as_uri()]
        subprocess.run([browser, *options], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    main()
