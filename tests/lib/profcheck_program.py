# SPDX-License-Identifier: Apache-2.0
"""tests/formats/go: reads what we write with libraries that others wrote, and checks every rule of the formats."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from command import run
from tap import Skip

SOURCE = Path(__file__).resolve().parent.parent / "formats/go"


def path(build):
    return Path(build) / "tests/formats/profcheck"


def build(folder):
    """Builds it into the build folder; two tests may want it at once."""
    if not shutil.which("go"):
        raise Skip("there is no go")
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOWORK="off")
    with open(Path(folder) / "profcheck.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["go", "mod", "download"], cwd=SOURCE, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=1200)
        if done.returncode:
            raise Skip("Go's modules cannot be fetched: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        run("go", "build", "-o", path(folder), ".", cwd=SOURCE, env=env, timeout=1200)
