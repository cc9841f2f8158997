# SPDX-License-Identifier: MIT
"""Python that calls code of a file for a second, and after that the same code in the same place,
now made at run time, as a JIT may do where a module was unloaded."""
import ctypes
import mmap
import os
import tempfile
import time

import ready

# count the first argument down
COUNT = bytes.fromhex("48ffcf 75fb c3")
MAP_FIXED = 0x10

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]


def call_file(count_down):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        count_down(1000000)


def call_made(count_down):
    while True:
        count_down(1000000)


def main():
    with tempfile.NamedTemporaryFile(suffix=".code") as file:
        os.write(file.fileno(), COUNT)
        place = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE,
                          file.fileno(), 0)
    count_down = ctypes.CFUNCTYPE(None, ctypes.c_long)(place)
    ready.announce()
    time.sleep(0.5)  # sampled from here on
    call_file(count_down)
    libc.mmap(place, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
              mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED, -1, 0)
    ctypes.memmove(place, COUNT, len(COUNT))
    call_made(count_down)


main()
