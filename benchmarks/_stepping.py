"""How fast a training script makes optimizer steps, as torch's own hook after each step counts them.

    python benchmarks/_stepping.py RESULT WARM SECONDS SCRIPT [ARGUMENT ...]

Runs SCRIPT as `python SCRIPT` would. WARM seconds after its first step, counting begins; SECONDS later the script is
ended where it stands, and RESULT holds `{"steps": …, "seconds": …}` as JSON. Without the doctor, and without a word of
the script's, so that it is the same for every script, as written and edited.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook


def main() -> None:
    result, warm, seconds, script, *arguments = sys.argv[1:]
    begin: list[float] = []
    steps = 0

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        nonlocal steps
        moment = time.perf_counter()
        if not begin:
            begin.append(moment + float(warm))
        elif steps == 0 and moment >= begin[0]:
            begin[0], steps = moment, 1  # The one that ends where counting begins.
        elif steps:
            steps += 1
            if moment - begin[0] >= float(seconds):
                told = {"steps": steps - 1, "seconds": moment - begin[0]}
                Path(result).write_text(json.dumps(told), encoding="utf-8")
                raise SystemExit(0)

    register_optimizer_step_post_hook(stepped)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
