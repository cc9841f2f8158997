# SPDX-License-Identifier: MIT
"""Two threads that call C functions which drop the GIL, with short Python functions between.

Possible stacks of the first: <module>; pack_all, and then nothing, pack (zlib.compress), or
the beginning of before_pack; leaf_pack. Of the second: hash_all, and then nothing, digest
(hashlib.sha256), or the beginning of before_digest; leaf_digest.
"""
import _thread
import hashlib
import zlib

import ready

BLOCK = bytes(range(256)) * 32  # more than the 2 KiB up to which hashlib keeps the GIL


def leaf_pack():
    n = 0
    while n < 200:
        n += 1


def before_pack():
    leaf_pack()
    leaf_pack()


def pack():
    zlib.compress(BLOCK, 1)


def pack_all():
    ready.announce()
    while True:
        before_pack()
        pack()


def leaf_digest():
    n = 0
    while n < 200:
        n += 1


def before_digest():
    leaf_digest()
    leaf_digest()


def digest():
    hashlib.sha256(BLOCK).digest()


def hash_all():
    while True:
        before_digest()
        digest()


_thread.start_new_thread(hash_all, ())  # without frames of threading
pack_all()
