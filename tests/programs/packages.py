# SPDX-License-Identifier: Apache-2.0
"""Where the programs' things lie, and the disassembler: capstone, from PyPI if the machine has none."""
import importlib
import os
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("SONDE_PROGRAMS", "/var/cache/sonde-programs"))


def python_packages():
    """Makes `import capstone` work, from the machine's own or from PyPI; why not, else None."""
    folder = CACHE / "python"
    sys.path.append(str(folder))
    for attempt in (False, True):
        if attempt:
            folder.mkdir(parents=True, exist_ok=True)
            done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "--upgrade", "capstone>=5"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode:
                return "no capstone: %s" % (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            importlib.invalidate_caches()
        try:
            import capstone  # pylint: disable=import-outside-toplevel
        except ImportError:
            continue
        return None if capstone.CS_API_MAJOR >= 4 else "capstone is older than 4"
    return "no capstone"
