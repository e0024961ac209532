# SPDX-License-Identifier: Apache-2.0
"""Reads a pprof file: samples with their functions' names and labels."""
import collections
import gzip

# Names outermost first, inlined functions behind those they are inlined into.
Sample = collections.namedtuple("Sample", "names labels values")

SAMPLE, LOCATION, FUNCTION, STRING = 2, 4, 5, 6


def _varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return n, at


def _fields(data):
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        elif key & 7 == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError("pprof has no fields of wire type %d" % (key & 7))
        yield key >> 3, value


def _numbers(value):
    """Of a repeated number, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        n, at = _varint(value, at)
        found.append(n)
    return found


def _of(message, *numbers):
    """Fields of these numbers, 0 where they are not."""
    found = dict(_fields(message))
    return [found.get(n, 0) for n in numbers]


def read(path):
    """All samples of the file. Labels with numbers are {key: number}, others {key: text}."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    samples, strings, functions, locations = [], [], {}, {}
    for number, value in _fields(data):
        if number == SAMPLE:
            samples.append(value)
        elif number == STRING:
            strings.append(value.decode())
        elif number == FUNCTION:
            ident, name = _of(value, 1, 2)
            functions[ident] = name
        elif number == LOCATION:
            ident = _of(value, 1)[0]
            locations[ident] = [_of(v, 1)[0] for n, v in _fields(value) if n == 4]
    found = []
    for sample in samples:
        ids, values, labels = [], [], {}
        for number, value in _fields(sample):
            if number == 1:
                ids += _numbers(value)
            elif number == 2:
                values += _numbers(value)
            elif number == 3:
                key, text, amount = _of(value, 1, 2, 3)
                labels[strings[key]] = strings[text] if text else amount
        names = [strings[functions[f]] for i in ids for f in locations[i]]
        found.append(Sample(names[::-1], labels, values))
    return found
