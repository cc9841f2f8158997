# SPDX-License-Identifier: MIT
"""Forks a process that works: forked.py thread|C. It ends when this one does.

With "thread" another thread than the main one forks; with "C" CPython does not know of the fork."""
import ctypes
import os
import signal
import sys
import threading

from ready import announce

libc = ctypes.PyDLL(None)
PR_SET_PDEATHSIG = 1


def spin():
    while True:
        pass


def fork(way):
    fork_it = os.fork if way == "thread" else libc.fork
    child = fork_it()
    if not child:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        spin()
    announce(child=child)
    threading.Event().wait()


if sys.argv[1] == "thread":
    thread = threading.Thread(target=fork, args=("thread",))
    thread.start()
    thread.join()
else:
    fork("C")
