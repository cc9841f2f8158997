# SPDX-License-Identifier: MIT
"""Runs code that the library LIBRARY (libunwind_codes.c) registers with libunwind, and reports its
names and addresses. Then cancels one code that ran at each SIGUSR1.

    runs_libunwind_codes.py LIBRARY NAME…
"""
import ctypes
import json
import os
import signal
import sys


def load(path):
    library = ctypes.CDLL(path)
    library.make_code.argtypes = [ctypes.c_char_p]
    library.make_code.restype = ctypes.c_void_p
    library.code_addr.argtypes = library.cancel_code.argtypes = [ctypes.c_void_p]
    library.code_addr.restype = ctypes.c_ulong
    return library


def report(**what):
    os.write(1, (json.dumps(what) + "\n").encode())


def main():
    library = load(sys.argv[1])
    made = [(name, library.make_code(os.fsencode(name))) for name in sys.argv[2:]]
    addrs = {name: library.code_addr(code) for name, code in made}

    def cancel_first(*_):
        name, code = made.pop(0)
        library.cancel_code(code)
        report(cancelled=name)

    signal.signal(signal.SIGUSR1, cancel_first)
    loop = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(addrs[sys.argv[-1]])
    report(pid=os.getpid(), addrs=addrs)
    while True:
        loop(10000000)


main()
