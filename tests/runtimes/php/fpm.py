#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A case of cases.php in a worker of PHP-FPM: fpm.py PHP-FPM CASES CASE FOLDER.

Starts a pool of one worker, asks it for the page by FastCGI, and prints what that says, line by line, which does not end.
"""
import os
import socket
import struct
import subprocess
import sys
import time

CONFIG = """[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
listen = {folder}/fpm.sock
pm = static
pm.max_children = 1
php_admin_value[max_execution_time] = 0
{user}
"""
BEGIN_REQUEST, PARAMS, STDIN, STDOUT = 1, 4, 5, 6  # FastCGI 1.0, 8: types of records


def record(kind, content):
    return struct.pack("!BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def parameter(name, value):
    name, value = name.encode(), value.encode()
    return struct.pack("!II", len(name) | 1 << 31, len(value) | 1 << 31) + name + value


def read_all(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def page(connection):
    """What the page says, as it comes."""
    while True:
        _, kind, _, length, padding, _ = struct.unpack("!BBHHBB", read_all(connection, 8))
        content = read_all(connection, length + padding)[:length]
        if kind == STDOUT:
            yield content


def connected(path):
    for _ in range(600):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            time.sleep(0.1)
    sys.exit("PHP-FPM does not answer")


def main():
    fpm, cases, case, folder = sys.argv[1:]
    folder = os.path.join(folder, "fpm-" + case)
    os.mkdir(folder)
    with open(os.path.join(folder, "fpm.conf"), "w", encoding="utf-8") as f:
        f.write(CONFIG.format(folder=folder, user="user = root\ngroup = root" if os.getuid() == 0 else ""))
    # `-R`: as root, as the tests are.
    with subprocess.Popen([fpm, "-F", "-R", "-d", "output_buffering=0", "-y", os.path.join(folder, "fpm.conf")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        parameters = {"SCRIPT_FILENAME": cases, "REQUEST_METHOD": "GET", "QUERY_STRING": "+".join([cases, case, folder]),
                      "SERVER_PROTOCOL": "HTTP/1.1", "GATEWAY_INTERFACE": "CGI/1.1"}
        with connected(os.path.join(folder, "fpm.sock")) as connection:
            connection.sendall(record(BEGIN_REQUEST, struct.pack("!HB5x", 1, 0)) +
                               record(PARAMS, b"".join(parameter(*p) for p in parameters.items())) + record(PARAMS, b"") +
                               record(STDIN, b""))
            text = b""
            for content in page(connection):
                text += content
                *lines, text = text.split(b"\n")
                for line in lines:
                    if line.startswith(b"{"):
                        print(line.decode(), flush=True)
                    elif b"rror" in line:
                        print(line.decode(), file=sys.stderr)


if __name__ == "__main__":
    main()
