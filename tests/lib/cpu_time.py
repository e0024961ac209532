# SPDX-License-Identifier: Apache-2.0
"""What a process has had of the CPU: tests wait for that, since a busy machine gives little of it in a second."""
import os


def cpu_seconds(pid):
    """CPU time of a process, its threads, and its children that were waited for."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return sum(int(x) for x in fields[11:15]) / os.sysconf("SC_CLK_TCK")
