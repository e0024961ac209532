# SPDX-License-Identifier: Apache-2.0
"""Run inside gdb: writes every thread's frames, as JSON, to the file named by $FRAMES."""
import json
import os

import gdb

KINDS = {gdb.NORMAL_FRAME: "normal", gdb.INLINE_FRAME: "inline", gdb.SIGTRAMP_FRAME: "signal",
         gdb.TAILCALL_FRAME: "tail"}
MOST = int(os.environ.get("FRAMES_MOST", "8192"))


def frames():
    found = []
    frame = gdb.newest_frame()
    while frame is not None and frame.is_valid() and len(found) < MOST:
        found.append({"pc": frame.pc(), "name": frame.name(), "kind": KINDS.get(frame.type(), "other")})
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


threads = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    threads[thread.ptid[1]] = frames()
with open(os.environ["FRAMES"], "w", encoding="utf-8") as out:
    json.dump(threads, out)
