# SPDX-License-Identifier: Apache-2.0
"""
Which processes are recorded: `--include` and `--exclude`, by each key, decided by the kernel and by user space. Copies of one
program run side by side; who is not selected has no sample, and who is has about as many as it took CPU time. docs/selection.md.
"""
import collections
import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile

from cpu_time import cpu_seconds
from folded_text import stacks_of
from modes import burnt, recording_began, wait_until
from sonde import FREQUENCY, Recorder, told_of
from tap import Skip

SECONDS = 0.2
FIRST, SECOND = "self%d" % (os.getpid() % 10000), "selg%d" % (os.getpid() % 10000)
"""Names of executables that nobody else has here."""


def copies(setup):
    folder = tempfile.mkdtemp(dir=setup.scratch)
    os.chmod(folder, 0o755)
    os.chmod(setup.scratch, 0o755)
    for name in (FIRST, SECOND):
        shutil.copy(setup.workload("chain"), os.path.join(folder, name))
    return folder


def samples_by_name(recording):
    found = collections.Counter()
    for stack in recording.stacks or []:
        found[stack.comm] += stack.count
    return found


def judge(recording, wanted, problems, seconds=SECONDS, rejected=1):
    """`wanted`: names of who is recorded, and nobody else is; `rejected`: samples of others, at least."""
    recording.expect_status(0)
    found = samples_by_name(recording)
    if set(found) != set(wanted):
        problems.append("samples of %s, wanted of %s" % (dict(found), wanted))
    for name in wanted:
        # A process may end before what its last samples need is known; on a busy machine ticks come late.
        if found[name] < 0.5 * seconds * FREQUENCY:
            problems.append("%d samples of %s in %.1f s" % (found[name], name, seconds))
    if (recording.stats or {}).get("rejected", 0) < rejected:
        problems.append("fewer than %d were rejected: %s" % (rejected, recording.stats))
    return problems + recording.problems, "%s, rejected %s, undecided %s" % (
        dict(found), *((recording.stats or {}).get(key) for key in ("rejected", "undecided")))


def both(setup, options, wanted, before=""):
    """Two programs, and the shell that runs them; `before` each of them stands what runs it."""
    folder = copies(setup)
    options = [option.replace("FOLDER", folder) for option in options]
    commands = ["%s %s %g & " % (before, os.path.join(folder, name), SECONDS) for name in (FIRST, SECOND)]
    recording = Recorder(setup, options, ["/bin/sh", "-c", "".join(commands) + "wait"]).wait()
    return judge(recording, wanted, [])


def by_comm(setup):
    return both(setup, ["--include", "comm=" + FIRST], [FIRST])


def by_beginning_of_comm(setup):
    return both(setup, ["--include", "comm=self*"], [FIRST])


def by_pattern_of_comm(setup):
    return both(setup, ["--include", "comm=s?lf*"], [FIRST])


def but_comm(setup):
    recording, note = both(setup, ["--exclude", "comm=sh", "--exclude", "comm=" + FIRST], [SECOND])
    return recording, note


def by_exe(setup):
    """The shell's child is one thing before its exec and another one behind it."""
    return both(setup, ["--include", "exe=FOLDER/" + SECOND], [SECOND])


def by_name_of_exe(setup):
    return both(setup, ["--include", "exe=" + FIRST, "--include", "exe=" + SECOND, "--exclude", "exe=" + FIRST], [SECOND])


def by_all_of_a_term(setup):
    return both(setup, ["--include", "uid=%d,exe=%s" % (os.getuid(), SECOND), "--include", "uid=4711"], [SECOND])


def by_uid(setup):
    folder = copies(setup)
    run = "setpriv --reuid 54321 --clear-groups"
    command = "%s %s/%s %g & %s/%s %g & wait" % (run, folder, FIRST, SECONDS, folder, SECOND, SECONDS)
    recording = Recorder(setup, ["--include", "uid=54321", "--exclude", "comm=setpriv"], ["/bin/sh", "-c", command]).wait()
    return judge(recording, [FIRST], [])


def by_users_name(setup):
    folder = copies(setup)
    command = "setpriv --reuid nobody --clear-groups %s/%s %g & %s/%s %g & wait" % (folder, FIRST, SECONDS, folder, SECOND, SECONDS)
    recording = Recorder(setup, ["--include", "uid=nobody", "--exclude", "comm=setpriv"], ["/bin/sh", "-c", command]).wait()
    return judge(recording, [FIRST], [])


def by_age(setup):
    """A process's first second is not recorded."""
    folder = copies(setup)
    # A child of the command: that one may be older than a second when its recording begins, and has some milliseconds of its own.
    recording = Recorder(setup, ["--include", "min-age=1s", "--exclude", "comm=sh"], ["/bin/sh", "-c", "%s/%s 2; exit" % (folder, FIRST)]).wait()
    # How much of its CPU time was in that second depends on who else is here.
    return judge(recording, [FIRST], [], 1, rejected=20)


@contextlib.contextmanager
def running(folder, name):
    with subprocess.Popen([os.path.join(folder, name), "1000"]) as process:
        try:
            yield process
        finally:
            process.kill()


def by_pid(setup):
    """Of the whole machine."""
    folder = copies(setup)
    with running(folder, FIRST) as first, running(folder, SECOND):
        recorder = Recorder(setup, ["--include", "pid=%d" % first.pid])
        recording_began(recorder)
        burnt(first.pid, SECONDS)
        recorder.process.send_signal(2)
        recording = recorder.wait()
    return judge(recording, [FIRST], [])


def mounted_cgroups():
    with open("/proc/self/mounts", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if fields[2] == "cgroup2":
                return fields[1]
    raise Skip("cgroups of version 2 are not mounted")


@contextlib.contextmanager
def cgroup(name):
    path = os.path.join(mounted_cgroups(), name)
    try:
        os.makedirs(path)
    except OSError as e:
        raise Skip("no cgroup can be made: %s" % e) from e
    try:
        yield path
    finally:
        wait_until("cgroup %s to be empty" % path, lambda: not read(path, "cgroup.procs"))
        for _ in name.split("/"):
            os.rmdir(path)
            path = os.path.dirname(path)


def read(folder, name):
    with open(os.path.join(folder, name), encoding="ascii") as f:
        return f.read()


def move(path, pid):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write(str(pid))


def moved(setup, name, term):
    """A process is in a cgroup for about half of its time: that half is recorded, whatever its begin and its end."""
    folder = copies(setup)
    with cgroup(name) as path, running(folder, FIRST) as first:
        recorder = Recorder(setup, ["--include", term])
        spent, inside = [], 0
        for where in (mounted_cgroups(), path, mounted_cgroups(), path, mounted_cgroups()):
            begin = cpu_seconds(first.pid)
            move(where, first.pid)
            # To move takes its time, in which the process goes on where it was.
            inside += spent[-1] + cpu_seconds(first.pid) - begin if len(spent) in (2, 4) else 0
            wait_until("0.3 s of CPU", lambda begin=begin: cpu_seconds(first.pid) >= begin + 0.3)
            spent.append(cpu_seconds(first.pid) - begin)
        recorder.process.send_signal(2)
        recording = recorder.wait()
    problems, note = judge(recording, [FIRST], [], spent[3])
    found = samples_by_name(recording)[FIRST]
    if found > 1.05 * inside * FREQUENCY + 20:
        problems.append("%d samples in %.2f s" % (found, inside))
    return problems, note + " in %.2f s" % inside


def by_cgroup(setup):
    name = "sonde-%d" % os.getpid()
    return moved(setup, name + "/sonde-inner", "cgroup=/" + name)


def by_container(setup):
    digits = "%064x" % (os.getpid() * 0x9e3779b97f4a7c15 % (1 << 256))
    digits = "ab" + digits[2:]
    return moved(setup, "sonde-%d/docker-%s" % (os.getpid(), digits), "container=" + digits[:12])


def sleep_once(setup, folder):
    """A recording of two sleeps of a second, one of them excluded; how long each name slept."""
    kept = setup.path(".otlp")
    command = " & ".join("%s/%s 1" % (shlex.quote(folder), name) for name in (FIRST, SECOND)) + " & wait"
    recording = Recorder(setup, ["--off-cpu", "1", "--exclude", "exe=" + SECOND, "--exclude", "comm=sh"],
                         ["/bin/sh", "-c", command], kept=kept).wait()
    recording.expect_status(0)
    done = subprocess.run([setup.program, "convert", kept, "-", "-f", "folded", "--type", "off_cpu"], check=False,
                          capture_output=True, text=True)
    slept = collections.Counter()
    for comm, _, ns in stacks_of(done.stdout):
        slept[comm] += ns
    return recording, slept


def sleeps(setup):
    """Off-CPU profiling minds the same."""
    folder = copies(setup)
    for name in (FIRST, SECOND):
        shutil.copy(shutil.which("sleep"), os.path.join(folder, name))

    def record():
        recording, slept = sleep_once(setup, folder)
        problems = recording.problems + ["slept, who is excluded: %s" % dict(slept)] * bool(set(slept) - {FIRST})
        return slept[FIRST] >= 1e9 or problems, recording.lost(), (recording, slept, problems)

    recording, slept, problems = told_of(record)
    if slept[FIRST] < 1e9:
        problems.append("slept: %s, lost: %s, undecided: %s" % (dict(slept), recording.lost(), (recording.stats or {}).get("undecided")))
    return problems, str(dict(slept))


def mistakes(setup):
    """Are said before anything is recorded."""
    problems = []
    for term, said in (("cmm=x", "did you mean 'comm'"), ("pid=x", "the number of a process"), ("x", "takes KEY=VALUE")):
        done = subprocess.run([setup.program, "record", "--include", term, "--", "true"], check=False, capture_output=True, text=True)
        if done.returncode != 2 or said not in done.stderr or len(done.stderr.splitlines()) != 1:
            problems.append("%s: %d, %s" % (term, done.returncode, done.stderr))
    return problems, None


def tests(_setup):
    yield "comm", by_comm
    yield "beginning-of-comm", by_beginning_of_comm
    yield "pattern-of-comm", by_pattern_of_comm
    yield "not-comm", but_comm
    yield "exe", by_exe
    yield "name-of-exe", by_name_of_exe
    yield "all-of-a-term", by_all_of_a_term
    yield "uid", by_uid
    yield "users-name", by_users_name
    yield "age", by_age
    yield "pid", by_pid
    yield "cgroup", by_cgroup
    yield "container", by_container
    yield "sleeps", sleeps
    yield "mistakes", mistakes
