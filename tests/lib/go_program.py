# SPDX-License-Identifier: Apache-2.0
"""Programs in Go, built into the build folder."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from command import run
from tap import Skip


def build(source, path, *flags):
    """Of the folder `source`, for tests that may want it at once. Without go, or where its modules cannot be had, Skip."""
    if not shutil.which("go"):
        raise Skip("there is no go")
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOWORK="off")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Fetches what the program needs, and no more.
        done = subprocess.run(["go", "list", "-deps", "."], cwd=source, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=1200, check=False)
        if done.returncode:
            raise Skip("Go's modules cannot be fetched: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        # Other tests take samples meanwhile.
        run("nice", "-n", "15", "go", "build", *flags, "-o", path, ".", cwd=source, env=env, timeout=1800)
