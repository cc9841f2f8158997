# SPDX-License-Identifier: MIT
"""Works until SIGUSR1 reports that it is sampled, and for 0.6 s more. Then it execs the same
program again, which works for 1.2 s and ends.

With the argument "thread" another thread than the main one execs.
"""
import os
import signal
import sys
import threading
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


def first():
    while not signalled.is_set():
        sum(range(100))
    work(time.monotonic() + 0.6)


def second():
    work(time.monotonic() + 1.2)


def become_second():
    first()
    os.execv(sys.executable, [sys.executable, __file__, "again"])


if sys.argv[1:] == ["again"]:
    second()
    sys.exit()
signalled = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: signalled.set())
ready.announce()
if sys.argv[1:] == ["thread"]:
    threading.Thread(target=become_second).start()
    threading.Event().wait()
become_second()
