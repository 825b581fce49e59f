"""Made-up checks that look like real ones: `python tests/golden/checks.py` writes them to checks/ as JSON.

The figures are invented but consistent with one another; nothing here was measured.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bottleneck_doctor.documents.check import (
    Check,
    Culprit,
    GrowthNode,
    GrowthTree,
    LentSpread,
    Losses,
    LossPoint,
    Metric,
    PairRecord,
    ProcessRecord,
    Side,
    StoredBase,
    TriedEdit,
)
from bottleneck_doctor.documents.check_json import to_json
from bottleneck_doctor.documents.fingerprint import Difference
from bottleneck_doctor.documents.measured import Speedup
from bottleneck_doctor.documents.report import Entrypoint, Environment, Site, Tool, Warning

HERE = Path(__file__).parent / "checks"

MIB = 1024**2


def metric(id: str, title: str, **given: object) -> Metric:
    """A metric in seconds that did not change, unless `given` says otherwise."""
    usual: dict[str, object] = {
        "unit": "seconds", "base": 0.1, "head": 0.1005, "change": 0.005, "low": -0.006, "high": 0.016,
        "threshold": 0.05, "level": "error", "verdict": "unchanged", "smallest": 0.028,
        "sentence": f"{title}: has not grown by 5 % or more (base 100 ms, head 100 ms).",
    }  # fmt: skip
    return Metric(id=id, title=title, **{**usual, **given})  # type: ignore[arg-type]


def call(name: str, path: str, line: int, base: float, head: float, *children: GrowthNode) -> GrowthNode:
    """A function of both revisions."""
    own = bool(path) and not path.startswith("/env")
    return GrowthNode(name=name, path=path, line=line, base=base, head=head, own=own, children=list(children))


def passed() -> Check:
    return Check(
        tool=Tool(name="bottleneck-doctor", version="0.1.0"),
        created="2026-11-20T10:31:00Z",
        entrypoint=Entrypoint(argv=["python", "train.py", "--epochs", "3"], cwd="/home/ada/pets/training"),
        base=Side(name="origin/main", commit="4fa76021c6f4f8d3f3a3b7a5a1f2c3d4e5f60718"),
        head=Side(name="the working tree", commit="9cc02b8a1f2c3d4e5f607184fa76021c6f4f8d3f", dirty=True),
        status="passed",
        sentence="A step has not become slower than on origin/main by 5 % or more: it takes 100 ms, and 100 ms there.",
        metrics=[
            metric("step_time", "Step time"),
            metric(
                "host_memory", "Peak memory", unit="bytes", base=1420.0 * MIB, head=1421.0 * MIB,
                change=0.0007, low=-0.001, high=0.002, threshold=0.1, level="warn", smallest=0.004,
                sentence="Peak memory: has not grown by 10 % or more (base 1.4 GiB, head 1.4 GiB).",
            ),
            metric(
                "device_memory", "Peak device memory", unit="bytes", base=None, head=None, change=None,
                low=None, high=None, verdict="not_measured", smallest=None,
                sentence="Peak device memory: could not be measured on either side.",
            ),
        ],
        pairs=[
            PairRecord(number=number, base_step_seconds=0.1, head_step_seconds=0.1005, log_ratio=0.005, windows=6)
            for number in range(1, 7)
        ],
        error_rate=0.01,
        seconds=131.0,
        budget=300.0,
        steady=True,
        environment=Environment(
            python="3.12.7", torch="2.9.1", platform="Linux 6.8, x86_64, glibc 2.39",
            cpu="AMD Ryzen 7 7700X 8-Core Processor", usable_cpus=4, total_cpus=16, memory_bytes=32 * 1024 * MIB,
            devices=[], variables={"OMP_NUM_THREADS": "4"}, fingerprint="b3f2c87d10e4",
        ),
        command=["doctor", "check", "--base-ref", "origin/main", "train.py", "--", "--epochs", "3"],
    )  # fmt: skip


def regressed() -> Check:
    slow = Site(file="/home/ada/pets/training/data.py", line=42)  # A whole path; those from the root are usual.
    usual = passed()
    return replace(
        usual,
        lent=LentSpread(checks=12, spread=0.013, degrees_of_freedom=4.0),
        status="regressed",
        sentence="A step takes 31 % longer than on origin/main (131 ms instead of 100 ms); the limit is 5 %. What grew "
        "most: `training/data.py`, line 42, takes 29 ms a step, and nothing on the base; it was changed.",
        metrics=[
            metric(
                "step_time", "Step time", head=0.131, change=0.31, low=0.28, high=0.34, verdict="regression",
                sentence="Step time: grew by 31 %, from 100 ms to 131 ms; the limit is 5 %.",
            ),
            metric(
                "data_wait", "Waiting for data", unit="share", base=0.06, head=0.28, change=0.22,
                low=0.2, high=0.24, level="warn", verdict="regression", smallest=0.02,
                sentence="Waiting for data: grew by 22 points, from 6 % to 28 %; the limit is 5 points.",
            ),
            usual.metrics[1],
            metric(
                "first_step", "Start to first step", base=4.1, head=4.4, change=0.07, low=-0.02, high=0.17,
                threshold=0.1, verdict="cannot_tell", smallest=0.2,
                sentence="Start to first step: seems to have grown by 7 %, from 4.1 s to 4.4 s, but that may be "
                "chance.",
            ),
            metric(
                "epoch_turn", "Epoch overhead", head=None, change=None, low=None, high=None, verdict="gone",
                smallest=None, sentence="Epoch overhead: it was measured on the base only.",
            ),
        ],
        culprits=[
            Culprit(
                kind="phase", name="data_wait", base=0.006, head=0.0367,
                sentence="Waiting for data takes 37 ms a step, and 6.0 ms on the base.",
            ),
            Culprit(
                kind="line", name="training/data.py:42", base=0.0, head=0.029, site=slow, changed_here=True,
                sentence="`training/data.py`, line 42, takes 29 ms a step, and nothing on the base; it was changed.",
            ),
            Culprit(
                kind="function", name="sharpened", base=0.0, head=0.028,
                site=Site(file="lib/sharp.py", line=7),
                sentence="`sharpened` takes 28 ms a step, and nothing on the base.",
            ),
        ],
        growth=[
            GrowthTree(
                role="main", base_samples=800, head_samples=1000,
                root=call(
                    "main", "", 0, 0.1, 0.131,
                    call(
                        "<module>", "training/train.py", 88, 0.1, 0.131,
                        call(
                            "__next__", "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py", 701,
                            0.006, 0.0367,
                            call(
                                "__getitem__", "training/data.py", 42, 0.005, 0.0357,
                                call("sharpened", "lib/sharp.py", 7, 0.0, 0.028),
                                call("open", "/env/lib/python3.12/site-packages/PIL/Image.py", 3431, 0.004, 0.0042),
                            ),
                        ),
                        call("forward", "training/model.py", 12, 0.040, 0.0402),
                        call("backward", "/env/lib/python3.12/site-packages/torch/_tensor.py", 630, 0.046, 0.0455),
                        call("log", "training/train.py", 61, 0.006, 0.0),
                    ),
                ),
            )
        ],
        commits=["9cc02b8 Sharpen the images, as @ada asked in #12", "2e6d7be Read the labels once"],
        warnings=[Warning(slug="other-load", sentence="Other programs used 0.4 cores meanwhile.")],
    )  # fmt: skip


def hostile() -> Check:
    """Text from the user's side that attacks whoever shows it."""
    attack = "</script><img src=x onerror=alert(1)> | `code` ``` ]]> <!-- --> **b** [a](javascript:1) @all #1 &lt; %0A"
    lines = "\n::error file=x,line=1::injected\r\n::set-output name=a::b\u2028\u202e\x1b[31m\x00"
    whole = regressed()
    site = Site(file="/home/ada/pets/a,b:c\n::error::d|`.py", line=0)
    return replace(
        whole,
        entrypoint=Entrypoint(argv=["python", attack + ".py", lines], cwd="/home/ada/pets"),
        base=Side(name=attack, commit=None, result=lines),
        head=Side(name=lines, commit=attack, dirty=True),
        sentence=attack + lines,
        metrics=[
            replace(each, id=f"{each.id}:{attack}", title=attack + lines, sentence=attack + lines, site=site)
            for each in whole.metrics
        ],
        culprits=[replace(each, name=attack + lines, sentence=lines, site=site) for each in whole.culprits],
        growth=[
            replace(each, root=call("main", "", 0, 0.1, 0.2, call(attack + lines, attack, 3, 0.1, 0.2)))
            for each in whole.growth
        ],
        commits=[attack, lines],
        warnings=[Warning(slug=attack, sentence=attack + lines)],
        command=["doctor", "check", attack, lines],
        environment=None,
    )


def stored() -> Check:
    """Against a stored baseline, which was made on another machine."""
    usual = regressed()
    step = replace(
        usual.metrics[0],
        sentence="Step time: grew by 31 %, from 100 ms to 131 ms; the limit is 5 %. The baseline was made on another "
        "machine.",
        low=0.12, high=0.53, smallest=0.21,
    )  # fmt: skip
    different = Difference(key="cores that may be used", base="8", head="4")
    return replace(
        usual,
        base=Side(
            name="the baseline ci/pets.json of 18 November 2026",
            commit="4fa76021c6f4f8d3f3a3b7a5a1f2c3d4e5f60718",
            result="ci/pets.json",
        ),
        sentence="A step takes 31 % longer than on the baseline ci/pets.json of 18 November 2026 (131 ms instead "
        "of 100 ms); the limit is 5 %. The baseline was made on another machine.",
        metrics=[step, usual.metrics[2]],
        pairs=[],
        culprits=usual.culprits[:1],
        warnings=[
            Warning(
                slug="another-machine",
                sentence="The baseline was made on another machine, so what differs may be the machine's: cores that "
                "may be used: 8 there, 4 here.",
            )
        ],
        command=["doctor", "check", "--baseline", "ci/pets.json", "--allow-different-machine", "train.py"],
        lent=None,
        stored=StoredBase(
            file="ci/pets.json",
            taken=["2026-11-14T03:17:00+00:00", "2026-11-16T03:17:00+00:00", "2026-11-18T03:17:00+00:00"],
            processes=24,
            different=[different],
        ),
        processes=[ProcessRecord(number=number, step_seconds=0.131, windows=3) for number in range(1, 9)],
    )


def faster() -> Check:
    """An edit that was tried, of a file, of arguments and of a variable."""
    usual = passed()
    step, memory = usual.metrics[0], usual.metrics[1]
    diff = (
        "--- a/training/data.py\n+++ b/training/data.py\n@@ -40,4 +40,3 @@\n     image = Image.open(path)\n"
        "-    image = image.filter(SHARPEN)\n     image = self.transform(image)\n     return image, label\n"
    )
    grew = "Peak memory of the host: grew by 23 %, from 1.4 GiB to 1.7 GiB; the limit is 10 %."
    return replace(
        usual,
        base=Side(name="as written", commit="9cc02b8a1f2c3d4e5f607184fa76021c6f4f8d3f", dirty=True),
        head=Side(name="fast.patch, --workers 8, OMP_NUM_THREADS=1", commit=None),
        sentence=f"The edit makes training 1.32× as fast (1.21–1.44, 6 pairs of processes). {grew}",
        metrics=[
            replace(
                step, head=0.0758, change=-0.242, low=-0.306, high=-0.174, threshold=0.02, verdict="improvement",
                smallest=0.031, sentence="Step time: fell by 24 %, from 100 ms to 76 ms.",
            ),
            replace(
                memory, head=1747.0 * MIB, change=0.23, low=0.21, high=0.25, verdict="regression", sentence=grew,
            ),
        ],
        pairs=[replace(each, head_step_seconds=0.0758, log_ratio=-0.277) for each in usual.pairs],
        command=[
            *("doctor", "try", "--patch", "fast.patch", "--args=--workers 8", "--env", "OMP_NUM_THREADS=1"), "train.py",
        ],
        edit=TriedEdit(
            files=["training/data.py"], diff=diff, arguments=["--workers", "8"], variables={"OMP_NUM_THREADS": "1"},
            speedup=Speedup(estimate=1.319, low=1.211, high=1.441, pairs=18, sessions=6),
        ),
        losses=Losses(
            verdict="alike", steps=1140, difference=-0.004, curve=curve(),
            sentence="The losses differ by 0.4 % over 1140 steps in 6 pairs, no more than chance and rounding do.",
        ),
    )  # fmt: skip


def curve() -> list[LossPoint]:
    """A loss that falls alike on both sides."""
    points = []
    for number in range(38):
        loss, wave = 0.7 + 1.6 * 0.93**number, 0.08 * ((number * 7) % 5 - 2)
        points.append(LossPoint(step=20 + 5 * number, base=round(loss + wave, 4), head=round(loss + 0.9 * wave, 4)))
    return points


def slower() -> Check:
    """An edit that makes it slower, and whose text reads like markup."""
    usual, slow = faster(), regressed()
    diff = (
        "--- /dev/null\n+++ b/training/note.py\n@@ -0,0 +1,3 @@\n+```\n+</code></pre><script>alert(1)</script>\n"
        "+# **x** @ada\n"
    )
    return replace(
        usual,
        head=Side(name="note.patch", commit=None),
        status="regressed",
        sentence="The edit makes training slower: 0.76× as fast (0.75–0.78, 6 pairs of processes). What grew most: "
        "`sharpened` takes 28 ms a step, nothing before; it was changed.",
        metrics=[replace(slow.metrics[0], threshold=0.02, sentence="Step time: grew by 31 %, from 100 ms to 131 ms.")],
        culprits=slow.culprits,
        growth=slow.growth,
        pairs=[replace(each, head_step_seconds=0.131, log_ratio=0.27) for each in usual.pairs],
        command=["doctor", "try", "--patch", "note.patch", "train.py"],
        edit=TriedEdit(
            files=["training/note.py"], diff=diff,
            speedup=Speedup(estimate=0.763, low=0.746, high=0.781, pairs=18, sessions=6),
        ),
    )  # fmt: skip


def results() -> dict[str, Check]:
    """Every golden check by the name of its files."""
    return {
        "passed": passed(),
        "regressed": regressed(),
        "hostile": hostile(),
        "stored": stored(),
        "try-faster": faster(),
        "try-slower": slower(),
    }


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, check in results().items():
        (HERE / f"{name}.json").write_bytes(to_json(check))
