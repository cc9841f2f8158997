# SPDX-License-Identifier: MIT
"""Works for 0.6 s, then becomes the same program again, which works for 1.2 s and ends.

With the argument "thread" another thread than the main one does that.
"""
import os
import sys
import threading
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


def first():
    work(time.monotonic() + 0.6)


def second():
    work(time.monotonic() + 1.2)


def become_second():
    first()
    os.execv(sys.executable, [sys.executable, __file__, "again"])


if sys.argv[1:] == ["again"]:
    second()
    sys.exit()
ready.announce()
if sys.argv[1:] == ["thread"]:
    threading.Thread(target=become_second).start()
    threading.Event().wait()
become_second()
