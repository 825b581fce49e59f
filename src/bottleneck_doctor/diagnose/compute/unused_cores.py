"""`unused-cores`: torch computes with fewer threads than there are cores, and with more it was seen to be faster."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import threads_set_at
from bottleneck_doctor.diagnose._rule import LARGE, ROOT, Rule, Statement, at, place
from bottleneck_doctor.diagnose._worth import measured_gain, surely_lost
from bottleneck_doctor.documents.report import Setting, Site
from bottleneck_doctor.knobs import intra_op_threads
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    cores, threads, shares = _usage.usable_cpus(evidence), evidence.found.threads, evidence.shares
    if evidence.on_device or shares is None or threads >= cores:
        return None
    # Small operations are not faster with more threads, so only a measured gain says that the cores are missed.
    weight = surely_lost(measured_gain(evidence, lambda setting: _more(setting, threads)))
    if weight < LARGE:
        return None
    computing = shares.forward + shares.backward + shares.optimizer
    site, library = threads_set_at(evidence), intra_op_threads.set_by(evidence.found)
    by = ""
    if library is not None and site is None:
        by = f", as a library sets it ({place(Site(file=library.file, line=library.line))})"
    return Statement(
        sentence=(
            f"torch computes with {words.count_text(threads, 'thread')}{at(site)} on "
            f"{words.count_text(cores, 'usable core')}{by}. Computing is {words.share_text(computing)} of a step."
        ),
        figures={"threads": float(threads), "usable_cpus": float(cores), "computing_share": computing},
        weight=weight * evidence.in_steps,
        measured=False,
        clause=(
            f"computes {words.share_text(computing)} of the time, with {words.count_text(threads, 'thread')} on "
            f"{words.count_text(cores, 'core')}"
        ),
        site=site,
    )


def _more(setting: Setting, threads: int) -> bool:
    asked = intra_op_threads.alone(setting)
    return asked is not None and asked > threads


RULE = Rule(
    id="unused-cores",
    title="Cores are left unused",
    topic="host",
    depth=ROOT,
    needs=("phases",),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
    advice="Let torch use the cores: `torch.set_num_threads`, or `OMP_NUM_THREADS` before the command. `torchrun` sets "
    "this variable to 1 for several processes where nobody has set it, and some libraries do so always.",
    fixes=("threads",),
    contradicts=("compute-bound",),
)
