"""The machine and one session's processes, watched from outside: a process id and windows in, `Utilization` out.

`UsageWatch` samples in a thread of the supervisor, ten times a second and for under 2 % of one core; it knows no
windows. `utilization` lays the windows over what was sampled afterwards. A thread and not a process: the supervisor
sleeps while windows run, so nobody fights for its interpreter, reading /proc is a few system calls, and nothing is
left behind where it dies. Whatever the system does not tell is a gap with a word about it, never an error.
"""

from bottleneck_doctor.monitor.load import LoadWatch, cpu_seconds
from bottleneck_doctor.monitor.run_queue import RunQueue
from bottleneck_doctor.monitor.usage import utilization
from bottleneck_doctor.monitor.watch import UsageWatch

__all__ = ["LoadWatch", "RunQueue", "UsageWatch", "cpu_seconds", "utilization"]
