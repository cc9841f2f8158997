# SPDX-License-Identifier: MIT
"""Holds objects whose insides are damaged and one that is whole, and reports where they are.

They must not be used, freed or collected any more, so the program stays where it is. Runs on
CPython 3.6 and newer, builds with the GIL.
"""
import ctypes
import gc
import os

from ready import announce

_read_end, _write_end = os.pipe()
NOWHERE = 0x10
HEAD = 2 * 8  # reference count and type


class Plain:
    def __init__(self):
        self.attribute = "kept"


def poke(value, offset, word):
    ctypes.c_uint64.from_address(id(value) + offset).value = word & (1 << 64) - 1


def hold():
    whole = [1, 2]
    no_type, odd_type, int_type = Plain(), Plain(), Plain()
    no_items, many_items, less_than_none = [3], [4], [5]
    no_item, odd_item = [6], [whole, 7]
    long_tuple, long_bytes, long_text = (8, 9), b"bytes", "".join(["te", "xt"])
    no_table, odd_mask, too_many = {10}, {11}, {12}
    no_keys, too_few = {"a": 13}, {"b": 14}
    long_int, no_array = 15 << 40, bytearray(b"16")
    last = "whole, too"
    poke(no_type, 8, NOWHERE)
    poke(odd_type, 8, id(Plain) + 1)
    poke(int_type, 8, id(7))
    poke(no_items, HEAD + 8, NOWHERE)
    poke(many_items, HEAD, 1 << 50)
    poke(less_than_none, HEAD, -1)
    ctypes.c_uint64.from_address(
        ctypes.c_uint64.from_address(id(no_item) + HEAD + 8).value).value = 0
    ctypes.c_uint64.from_address(
        ctypes.c_uint64.from_address(id(odd_item) + HEAD + 8).value + 8).value = NOWHERE + 3
    poke(long_tuple, HEAD, 1 << 59)
    poke(long_bytes, HEAD, 1 << 62)
    poke(long_text, HEAD, 1 << 61)
    poke(no_table, HEAD + 24, NOWHERE)
    poke(odd_mask, HEAD + 16, 12345)
    poke(too_many, HEAD + 8, 6)
    poke(no_keys, HEAD + 16, NOWHERE)
    poke(too_few, HEAD, 5)
    poke(long_int, HEAD, 1 << 50)
    poke(no_array, HEAD + 24, NOWHERE)
    announce(parking=_read_end, addrs={name: id(value) for name, value in locals().items()})
    os.read(_read_end, 1)


gc.disable()
hold()
