# SPDX-License-Identifier: MIT
"""Two threads make and free blocks of 1 to 64 MiB, with short Python functions between: what
the process maps changes all the time, and its page tables with it.

Possible stacks of the first: <module>; fill_arrays, and then nothing, make_array, touch_array,
or before_array; leaf_array. Of the second: fill_maps, and then nothing, make_map, touch_map,
free_map, or before_map; leaf_map.
"""
import _thread
import mmap

import ready

MIB = 1 << 20
SIZES = [MIB << n for n in range(7)]
STEP = 64 << 10  # every so many bytes one is written


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
    while True:
        for size in SIZES:
            before_array()
            block = make_array(size)
            touch_array(block)
            del block


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
    while True:
        for size in SIZES:
            before_map()
            block = make_map(size)
            touch_map(block)
            free_map(block)


_thread.start_new_thread(fill_maps, ())  # without frames of threading
fill_arrays()
