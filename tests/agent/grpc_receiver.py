# SPDX-License-Identifier: Apache-2.0
"""A collector of OTLP over gRPC, grpc_server.py, as tests see it."""
import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading

from command import run
from running import TIMEOUT, samples_of
from tap import check

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # has grpcio, a package of the system
MISSING = "the system's python has no grpcio (packages python3-grpcio, python3-protobuf)"


def is_there():
    return not subprocess.run([PYTHON, "-c", "import grpc, google.protobuf"], capture_output=True, check=False).returncode


class Server:
    """grpc_server.py; `all` is what it told of its requests so far."""

    def __init__(self, answers=(), **options):
        self.folder = tempfile.mkdtemp(prefix="server-", dir=".")
        proto = os.path.join(HERE, "..", "..", "src/export/proto")
        run("protoc", f"--python_out={self.folder}", f"-I{proto}", f"-I{HERE}", "request.proto", "otlp.proto")
        self.process = subprocess.Popen([PYTHON, f"{HERE}/grpc_server.py", self.folder, json.dumps(dict(options, answers=answers))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.all = []
        self.told = queue.Queue()
        # It is read all the time: a pipe that is full would stop the server.
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        # The last line of one that is killed may break off.
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                told = json.loads(line)
                self.all.append(told)
                self.told.put(told)
        self.told.put(None)

    def wait(self, times=1):
        """The last of so many more requests."""
        for _ in range(times):
            told = self.told.get(timeout=TIMEOUT)
            check(told, "the server ended")
        return told

    def listen_anew(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self):
        """It ends; all that it told is there."""
        self.process.stdin.close()
        self.reader.join(TIMEOUT)
        check(not self.reader.is_alive(), "the server does not end")

    def bodies(self, wanted=lambda answer: answer is None or "rejected" in answer):
        for number, told in enumerate(self.all):
            if wanted(told["answer"]):
                with open(f"{self.folder}/{number}", "rb") as file:
                    yield file.read()

    def samples(self):
        """Of what it took; two decoders say the same."""
        total = sum(told["samples"] for told in self.all if told["answer"] is None or "rejected" in told["answer"])
        other = samples_of(self.bodies())
        check(total == other, f"{total} samples by protoc's code, {other} by the collector's")
        return total
