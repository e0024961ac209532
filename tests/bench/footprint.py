# SPDX-License-Identifier: Apache-2.0
"""What memory a process has: its resident pages and its BPF maps, those that are both counted once."""
import collections
import glob
import os
import re
import threading

# Bytes. `mapped`: pages of BPF maps that are resident in the process too, so part of rss and of maps.
Footprint = collections.namedtuple("Footprint", "rss peak_rss mapped maps")

FIRST_LINE = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ")


def total(footprint):
    return footprint.rss - footprint.mapped + footprint.maps


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def status_bytes(pid):
    """VmRSS and VmHWM."""
    text = read("/proc/%d/status" % pid)
    return tuple(int(re.search(r"%s:\s+(\d+) kB" % key, text).group(1)) * 1024 for key in ("VmRSS", "VmHWM"))


def mapped_map_bytes(pid):
    """Resident pages of mappings of BPF maps (the ring's data is mapped twice, and so counted in VmRSS)."""
    inside, kb = False, 0
    for line in read("/proc/%d/smaps" % pid).splitlines():
        if FIRST_LINE.match(line):
            inside = "anon_inode:bpf" in line
        elif inside and line.startswith("Rss:"):
            kb += int(line.split()[1])
    return kb * 1024


def map_bytes(pid):
    """The kernel's own account (memlock) of every BPF map that the process holds, each once."""
    maps = {}
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            text = read(path)
        except OSError:
            continue
        if "map_id:" in text:
            maps[re.search(r"map_id:\s+(\d+)", text).group(1)] = int(re.search(r"memlock:\s+(\d+)", text).group(1))
    return sum(maps.values())


def footprint(pid):
    """Of a process now; None if it is gone (a zombie has no memory)."""
    try:
        rss, peak = status_bytes(pid)
        return Footprint(rss, peak, mapped_map_bytes(pid), map_bytes(pid))
    except (OSError, AttributeError):
        return None


class Watcher:
    """Looks at a process again and again until it ends; `largest` is the look with the largest total.

    A peak between two looks is not missed: where the kernel's high-water mark rose, it stands for the resident
    pages of that look.
    """

    def __init__(self, pid, interval=0.02):
        self.pid = pid
        self.interval = interval
        self.largest = None
        self.looks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        peak = 0
        while not self._stop.wait(self.interval):
            seen = footprint(self.pid)
            if not seen or not os.path.exists("/proc/%d" % self.pid):
                return
            self.looks += 1
            if seen.peak_rss > peak:
                peak = seen.peak_rss
                seen = seen._replace(rss=max(seen.rss, peak))
            if not self.largest or total(seen) > total(self.largest):
                self.largest = seen

    def stop(self):
        self._stop.set()
        self._thread.join()
        return self.largest
