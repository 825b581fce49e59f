"""The machine and one session's processes, watched from outside: a process id and windows in, `Utilization` out.

`UsageWatch` samples in a thread of the supervisor, ten times a second and for under 2 % of one core; it knows no
windows. Afterwards, `utilization` takes the samples that belong to each window. A thread is enough: the supervisor
sleeps while windows run, so nothing else needs its interpreter, reading /proc takes a few system calls, and a
supervisor that dies leaves no process behind. If the system does not report a figure, there is a gap with a note, never
an error.
"""

from bottleneck_doctor.monitor.load import LoadWatch, cpu_seconds
from bottleneck_doctor.monitor.run_queue import RunQueue
from bottleneck_doctor.monitor.usage import utilization
from bottleneck_doctor.monitor.watch import UsageWatch

__all__ = ["LoadWatch", "RunQueue", "UsageWatch", "cpu_seconds", "utilization"]
