"""`worker-threads`: one thread in each worker for the libraries that its samples compute with."""

from __future__ import annotations

import os

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, workers_obstacle
from bottleneck_doctor.knobs import num_workers, single_threaded
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found)
    if obstacle is not None:
        return obstacle
    seen = single_threaded.seen(found)
    if seen is None:
        return NotApplicable("which threads prepare its samples could not be seen")
    if seen.get("obstacle"):
        return NotApplicable(str(seen["obstacle"]))
    libraries = [str(each) for each in seen.get("libraries", ())]
    if not libraries:
        chosen = next((name for name in single_threaded.VARIABLES.values() if os.environ.get(name) == "1"), "")
        return NotApplicable(
            f"already on: `{chosen}=1` is set"
            if chosen
            else "neither OpenBLAS (NumPy, SciPy) nor OpenCV has threads of its own here"
        )
    several = seen.get("several")
    if several is False:
        return NotApplicable("its samples are prepared by one thread each")
    setting: Setting = {single_threaded.NAME: "+".join(libraries)}
    if found.num_workers == 0:
        setting |= num_workers.setting_of(max(1, found.usable_cpus))
    unseen = "" if several else "samples of an iterable dataset can't be looked at beforehand"
    return Offer((setting,), on_request=unseen)


FIX = Fix(
    id="worker-threads",
    title="Give each worker one thread for NumPy and OpenCV",
    why=(
        "NumPy, SciPy and OpenCV compute with as many threads as there are cores, in each worker anew. With several "
        "workers these are more threads than cores, and they wait for one another."
    ),
    source="https://github.com/OpenMathLib/OpenBLAS/wiki/Faq",
    risk="numerics",
    how=(
        "Set `OPENBLAS_NUM_THREADS=1` (NumPy, SciPy) and `OPENCV_FOR_THREADS_NUM=1` before Python starts. Or call "
        "`cv2.setNumThreads(0)` and `threadpoolctl.threadpool_limits(1)` in the loader's `worker_init_fn`."
    ),
    target="data",
    propose=propose,
    order=14,
)
