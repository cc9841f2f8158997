# SPDX-License-Identifier: MIT
"""Works (working.py) as nobody, beside a child that nobody may not sample, or not exactly:
refused.py WAY FOLDER. The child reports itself and waits."""
import ctypes
import os
import sys
import time

from working import report, work

NOBODY = 65534
PR_SET_DUMPABLE = 4


def become_nobody():
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)


def wait(folder):
    report(folder, "child")
    while os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.01)
    os._exit(0)


def user(folder):
    """The child stays root."""
    if not os.fork():
        wait(folder)
    become_nobody()


def real_time(folder):
    if not os.fork():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        become_nobody()
        wait(folder)
    become_nobody()


def threads(folder):
    """The child's list of threads (3.13 to 3.15) is a ring."""
    if not os.fork():
        ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
        state = ctypes.pythonapi.PyThreadState_Get()
        ctypes.c_uint64.from_address(state + 8).value = state
        wait(folder)


globals()[sys.argv[1]](sys.argv[2])
work(sys.argv[2], "root")
