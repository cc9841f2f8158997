# SPDX-License-Identifier: MIT
"""Its main thread ends, at once or a second later, and leaves the work to another one."""
import ctypes
import sys
import threading
import time

import ready


def work():
    ready.announce(worker=ready.native_id())
    begun.set()
    while True:
        sum(range(100))


def later():
    until = time.monotonic() + 1
    while time.monotonic() < until:
        sum(range(100))


begun = threading.Event()
threading.Thread(target=work).start()
begun.wait()
if len(sys.argv) > 1:
    later()
ctypes.CDLL(None).pthread_exit(None)
