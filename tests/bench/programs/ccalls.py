# SPDX-License-Identifier: MIT
"""Two threads call C functions that release the GIL, with short Python functions in between.

Possible stacks of the first: <module>; pack_all, then nothing, pack (zlib.compress), or
the beginning of before_pack; leaf_pack. Of the second: hash_all, then nothing, digest
(hashlib.sha256), or the beginning of before_digest; leaf_digest.
"""
import _thread
import hashlib
import zlib

import ready

BLOCK = bytes(range(256)) * 32  # hashlib releases the GIL above 2 KiB


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
