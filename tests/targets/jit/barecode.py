# SPDX-License-Identifier: MIT
"""Python that calls code made at run time all the time. Nothing describes the code, neither its
name nor how to unwind it, as with kernels of numba. It is not code of CPython's JIT."""
import ctypes
import mmap

import ready

# push all registers that a function must keep, and clear them; then count the first argument down
COUNT = bytes.fromhex(
    "53 55 4154 4155 4156 4157"
    "31db 31ed 4531e4 4531ed 4531f6 4531ff"
    "48ffcf 75fb"
    "415f 415e 415d 415c 5d 5b c3")

memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                   prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(COUNT)
count_down = ctypes.CFUNCTYPE(None, ctypes.c_long)(
    ctypes.addressof(ctypes.c_char.from_buffer(memory)))


def call_bare_code():
    count_down(1000000)


def repeat():
    for _ in range(100):
        call_bare_code()


def main():
    while True:
        repeat()


ready.announce()
main()
