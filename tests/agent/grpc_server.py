#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A collector of OTLP over gRPC (grpcio, whose core is Google's C++): `grpc_server.py FOLDER OPTIONS`, run by the system's python,
which has grpcio. FOLDER has request_pb2.py; OPTIONS is JSON: port, answers, cert, key, client_ca.

Each request is decoded and kept as FOLDER/NUMBER; a line of JSON on stdout tells of it, the first line is the port. A line on
stdin makes it end its connections in order and listen anew; the end of stdin ends it.

An answer: null (taken), {"code", "message", "delay"} (a status, RetryInfo's seconds), {"rejected", "message", "packed"} (partial
success, in gzip or not) or "never".
"""
import concurrent.futures
import json
import sys
import threading
import time

import grpc

FOLDER, OPTIONS = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, FOLDER)
import request_pb2

answers = OPTIONS.get("answers", [])
lock = threading.Lock()
seen = 0
SERVICE = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"


def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def status_with_delay(code, seconds):
    """google.rpc.Status with a RetryInfo."""
    duration = b"\x08" + bytes([seconds])
    info = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, duration))
    return b"\x08" + bytes([code]) + field(3, info)


def export(data, context):
    global seen
    decoded = request_pb2.Request.FromString(data)
    samples = sum(len(sample.timestamps_unix_nano) for resource in decoded.resource_profiles for scope in resource.scope_profiles
                  for profile in scope.profiles for sample in profile.samples)
    with lock:
        number, answer = seen, answers[seen] if seen < len(answers) else None
        seen += 1
        with open(f"{FOLDER}/{number}", "wb") as file:
            file.write(data)
        print(json.dumps({"answer": answer, "peer": context.peer(), "left": context.time_remaining(), "time": time.monotonic(),
                          "samples": samples,
                          "metadata": {key: str(value) for key, value in context.invocation_metadata()}}), flush=True)
    if answer == "never":
        while context.is_active():
            time.sleep(0.02)
        return b""
    if answer is None:
        return b""
    if "rejected" in answer:
        if answer.get("packed"):
            context.set_compression(grpc.Compression.Gzip)
        return field(1, b"\x08" + bytes([answer["rejected"]]) + field(2, answer["message"].encode()))
    if "delay" in answer:
        context.set_trailing_metadata((("grpc-status-details-bin", status_with_delay(answer["code"], answer["delay"])),))
    context.abort(next(code for code in grpc.StatusCode if code.value[0] == answer["code"]), answer.get("message", "no"))


def serve(port):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        SERVICE, {"Export": grpc.unary_unary_rpc_method_handler(export)}),))
    if "cert" in OPTIONS:
        read = lambda name: open(OPTIONS[name], "rb").read() if name in OPTIONS else None
        credentials = grpc.ssl_server_credentials([(read("key"), read("cert"))], read("client_ca"), "client_ca" in OPTIONS)
        port = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    else:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port


def main():
    server, port = serve(OPTIONS.get("port", 0))
    print(port, flush=True)
    for _ in sys.stdin:
        server.stop(5).wait()
        server, _ = serve(port)
    server.stop(0)


if __name__ == "__main__":
    main()
