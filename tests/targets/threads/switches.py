# SPDX-License-Identifier: MIT
"""Two threads pass a byte to each other through pipes: each runs for some microseconds at a time.

Runs on CPython 3.6 and newer.
"""
import os
import threading

import ready


def pass_on(source, sink):
    while True:
        os.write(sink, os.read(source, 1))


def main():
    first, second = os.pipe(), os.pipe()
    threading.Thread(target=pass_on, args=(first[0], second[1]), daemon=True).start()
    os.write(first[1], b".")
    ready.announce()
    pass_on(second[0], first[1])


main()
