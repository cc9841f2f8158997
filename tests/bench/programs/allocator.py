# SPDX-License-Identifier: MIT
"""Two threads make and free blocks of 1 to 64 MiB, with short Python functions in between, so
that the mappings and page tables of the process change all the time.

Possible stacks of the first: <module>; fill_arrays, then nothing, make_array, touch_array,
or before_array; leaf_array. Of the second: fill_maps, then nothing, make_map, touch_map,
free_map, or before_map; leaf_map.

It keeps its own account (tests/bench/stack_times.py): most of the time it is in long system calls
that lock its memory map, where nothing outside can look at it.
"""
import _thread
import mmap
import os
from time import monotonic

import ready

MIB = 1 << 20
SIZES = [MIB << n for n in range(7)]
STEP = 64 << 10  # one byte in this many is written

SLOT = 4096  # bytes of each thread's account
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "account"), "wb+") as file:
    file.truncate(2 * SLOT)
    ACCOUNT = mmap.mmap(file.fileno(), 2 * SLOT)
ARRAYS = (b"<module>;fill_arrays %.6f\n<module>;fill_arrays;before_array;leaf_array %.6f\n"
          b"<module>;fill_arrays;make_array %.6f\n<module>;fill_arrays;touch_array %.6f\n")
MAPS = (b"fill_maps %.6f\nfill_maps;before_map;leaf_map %.6f\nfill_maps;make_map %.6f\n"
        b"fill_maps;touch_map %.6f\nfill_maps;free_map %.6f\n")


def leaf_array():
    n = 0
    while n < 100:
        n += 1


def before_array():
    for _ in range(10):
        leaf_array()


def make_array(size):
    return bytearray(size)


def touch_array(block):
    for i in range(0, len(block), STEP):
        block[i] = 1


def fill_arrays():
    ready.announce()
    begun = monotonic()
    own_s = before_s = make_s = touch_s = 0.0
    while True:
        for size in SIZES:
            called = monotonic()
            own_s += called - begun
            before_array()
            begun = monotonic()
            before_s += begun - called
            block = make_array(size)
            called = monotonic()
            make_s += called - begun
            touch_array(block)
            begun = monotonic()
            touch_s += begun - called
            del block
            text = ARRAYS % (own_s, before_s, make_s, touch_s)
            ACCOUNT[:len(text)] = text


def leaf_map():
    n = 0
    while n < 100:
        n += 1


def before_map():
    for _ in range(10):
        leaf_map()


def make_map(size):
    return mmap.mmap(-1, size)


def touch_map(block):
    for i in range(0, len(block), STEP):
        block[i] = 1


def free_map(block):
    block.close()


def fill_maps():
    begun = monotonic()
    own_s = before_s = make_s = touch_s = free_s = 0.0
    while True:
        for size in SIZES:
            called = monotonic()
            own_s += called - begun
            before_map()
            begun = monotonic()
            before_s += begun - called
            block = make_map(size)
            called = monotonic()
            make_s += called - begun
            touch_map(block)
            begun = monotonic()
            touch_s += begun - called
            free_map(block)
            called = monotonic()
            free_s += called - begun
            begun = called
            text = MAPS % (own_s, before_s, make_s, touch_s, free_s)
            ACCOUNT[SLOT:SLOT + len(text)] = text


_thread.start_new_thread(fill_maps, ())  # without frames of threading
fill_arrays()
