# SPDX-License-Identifier: Apache-2.0
"""A command that is run to its end."""
import subprocess


def with_tracers(args, tracers):
    """The arguments of a sonde; of one that samples with --tracers, if they do not have it."""
    args = [str(arg) for arg in args]
    return [*args[:1], "--tracers", tracers, *args[1:]] if args and args[0] in ("record", "top") and "--tracers" not in args else args


def of_native_code(args):
    """with_tracers(), for a test that is not about runtimes: to load their programs takes a second of CPU."""
    return with_tracers(args, "native")


def run(*argv, status=0, stdin=None, text=True, timeout=600, **options):
    """The subprocess.CompletedProcess, with what it said on both outputs. Its standard input is `stdin`, or empty. One that
    ends with another status raises AssertionError; None: any status will do."""
    more = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text, timeout=timeout,
                          check=False, **{**more, **options})
    if status not in (None, done.returncode):
        said = [part if isinstance(part, str) else part.decode(errors="replace") for part in (done.stdout, done.stderr)]
        raise AssertionError("%s: status %d, not %d\n%s%s" % (" ".join(map(str, argv)), done.returncode, status,
                                                            said[0][-1500:], said[1][-3000:]))
    return done
