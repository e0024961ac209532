# SPDX-License-Identifier: Apache-2.0
"""tests/formats/go: reads what we write with libraries that others wrote, and checks every rule of the formats."""
from pathlib import Path

import go_program

SOURCE = Path(__file__).resolve().parent.parent / "formats/go"


def path(build):
    return Path(build) / "tests/formats/profcheck"


def build(folder):
    go_program.build(SOURCE, path(folder))
