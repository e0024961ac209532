#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The live tests: sonde records real processes on this machine. TAP on standard output.

    live_test.py GROUP... [--sonde PROGRAM] [--workloads DIR] [--only REGEX] [--keep]

Groups: known-answers, modes, hotplug, short, perf, sources, off-cpu, selection. See docs/testing.md. Needs root, BPF and the built workloads.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

import against_perf
import known_answers
import modes
import off_cpu
import selection
import short_processes
import sources
import guard
import tap
from sonde import Setup, missing

GROUPS = {
    "known-answers": known_answers.tests,
    "modes": modes.tests,
    "hotplug": modes.hotplug_tests,
    "short": short_processes.tests,
    "perf": against_perf.tests,
    "sources": sources.tests,
    "off-cpu": off_cpu.tests,
    "selection": selection.tests,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    root = os.environ.get("SONDE_BUILD_ROOT", "build")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP")
    parser.add_argument("--sonde", default=os.path.join(root, "sonde"))
    parser.add_argument("--workloads", default=os.path.join(root, "tests", "workloads"))
    parser.add_argument("--only", default="", help="run the tests whose name this matches")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    args = parser.parse_args()
    reason = missing()
    if reason:
        return tap.skip_all(reason)
    scratch = tempfile.mkdtemp(prefix="sonde-live-")
    setup = Setup(os.path.abspath(args.sonde), os.path.abspath(args.workloads), scratch, "native")
    tests = [t for g in args.groups or GROUPS for t in GROUPS[g](setup) if re.search(args.only, t[0])]
    status = tap.run((name, lambda test=test: test(setup)) for name, test in tests)
    if args.keep:
        print("# files: %s" % scratch)
    else:
        shutil.rmtree(scratch)
    return status


if __name__ == "__main__":
    sys.exit(guard.run(main))
