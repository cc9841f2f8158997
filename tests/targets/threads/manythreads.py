# SPDX-License-Identifier: MIT
"""Threads that sleep, each with a name that it gave itself. The argument is how many."""
import ctypes
import sys
import threading
import time

import ready

PR_SET_NAME = 15
libc = ctypes.CDLL(None)
named = {}
everybody_is_named = threading.Barrier(int(sys.argv[1]) + 1)


def sleep(name):
    libc.prctl(PR_SET_NAME, name.encode())
    named[ready.native_id()] = name
    everybody_is_named.wait()
    time.sleep(3600)


for number in range(int(sys.argv[1])):
    threading.Thread(target=sleep, args=("sleeper %d" % number,), daemon=True).start()
everybody_is_named.wait()
ready.announce(named=named)
time.sleep(3600)
