# SPDX-License-Identifier: Apache-2.0
"""
A collector of OTLP over HTTP that keeps what it is sent, and answers each request as the test wants.

What it gets is kept as it came; the tests have it decoded by the OpenTelemetry collector's library.
"""
import collections
import contextlib
import gzip
import http.server
import itertools
import queue
import socket
import ssl
import struct
import threading
import time

Request = collections.namedtuple("Request", "path headers body plain peer time answer")


class Receiver:
    """
    `answers`: one a request, in their order, 200 behind them: a number (a status), or a function that is given the handler
    and answers by itself. What was sent and answered by 200 is in `taken`.
    """

    def __init__(self, answers=(), port=0, tls=None):
        self.answers = collections.deque(answers)
        self.requests = queue.Queue()
        self.all = []
        self.connections = []
        self.open = 0
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                receiver.connections.append(self.connection)
                receiver.count(1)

            def finish(self):
                try:
                    super().finish()
                finally:
                    receiver.count(-1)

            def do_POST(self):
                receiver.handle(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 100

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle(self, handler):
        answer = self.answers.popleft() if self.answers else 200
        size = int(handler.headers["Content-Length"])
        if answer is die_midway:
            handler.rfile.read(size // 2)
            answer(handler)
            return
        body = handler.rfile.read(size)
        plain = gzip.decompress(body) if handler.headers["Content-Encoding"] == "gzip" else body
        request = Request(handler.path, handler.headers, body, plain, handler.client_address, time.monotonic(), answer)
        self.all.append(request)
        try:
            if callable(answer):
                answer(handler)
            else:
                reply(handler, answer)
        except OSError:
            handler.close_connection = True
            if answer == 200:
                self.all.remove(request)
        finally:
            self.requests.put(request)

    def count(self, connections):
        with self.changed:
            self.open += connections
            self.changed.notify_all()

    def wait_for_ends(self, timeout=300):
        """Until nobody is connected any more, and all that came is there."""
        with self.changed:
            if not self.changed.wait_for(lambda: not self.open, timeout):
                raise TimeoutError("somebody stays connected")

    def wait(self, times=1, timeout=300):
        """The last of so many more requests, which have been answered."""
        for _ in range(times):
            request = self.requests.get(timeout=timeout)
        return request

    def bodies(self, wanted=lambda answer: answer == 200):
        return [request.plain for request in self.all if wanted(request.answer)]


def reply(handler, status, body=b"", headers=()):
    handler.send_response(status)
    handler.send_header("Content-Type", "application/x-protobuf")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def replying(*args, **kwargs):
    return lambda handler: reply(handler, *args, **kwargs)


def hang_up(handler):
    """As a server does that is killed."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def die_midway(handler):
    """As one that is killed before it has read all: the client is told of a reset."""
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"\0" * 65536)


def endless_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-More: " + b"x" * 8000 + b"\r\n")


def slow(*before):
    """A byte a second, behind what is said at once; of an answer's first line, which has no end, if that is nothing. What is none
    would not be waited for."""
    def answer(handler):
        handler.wfile.write(b"".join(before))
        for byte in itertools.chain(() if before else b"HTTP/1.1 ", itertools.repeat(ord("2"))):
            handler.wfile.write(bytes([byte]))
            time.sleep(1)
    return answer


def server_tls(cert, key, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
