# SPDX-License-Identifier: MIT
"""Imports one module after the other, each a file of its own, and runs its code for a while."""
import importlib.util
import itertools
import time

import ready

DATA = bytes(200000)
WORK = {
    "_bz2": lambda module: module.BZ2Compressor().compress(DATA),
    "_hashlib": lambda module: module.openssl_sha256(DATA).digest(),
    "_lzma": lambda module: module.LZMACompressor(preset=0).compress(DATA),
    "_decimal": lambda module: module.Decimal(3) ** 3000,
    "_ctypes": lambda module: [number_type(module)(number) for number in range(100)],
}


def number_type(module):
    return type("Number", (module._SimpleCData,), {"_type_": "l"})


def work(name):
    module = importlib.import_module(name)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        WORK[name](module)


names = [name for name in WORK if importlib.util.find_spec(name)]  # a build may lack some
ready.announce(lines=[WORK[name].__code__.co_firstlineno for name in names])
time.sleep(0.5)  # sampled from here on
for name in itertools.cycle(names):
    work(name)
