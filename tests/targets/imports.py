# SPDX-License-Identifier: MIT
"""Imports one module after the other that is a file of its own, and runs its code for a while."""
import importlib
import itertools
import time

import ready

DATA = bytes(200000)
WORK = {
    "_bz2": lambda module: module.BZ2Compressor().compress(DATA),
    "_hashlib": lambda module: module.openssl_sha256(DATA).digest(),
    "_lzma": lambda module: module.LZMACompressor(preset=0).compress(DATA),
    "_decimal": lambda module: module.Decimal(3) ** 3000,
    "_ctypes": lambda module: [module.sizeof(module.Structure) for _ in range(1000)],
}


def work(name):
    try:
        module = importlib.import_module(name)
    except ImportError:  # built without it
        return
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        WORK[name](module)


ready.announce()
time.sleep(0.5)  # to be sampled from here on
for name in itertools.cycle(WORK):
    work(name)
