# SPDX-License-Identifier: MIT
"""Its list of threads (3.13 to 3.15) is a ring: at once or, with "later", after SIGUSR1."""
import ctypes
import signal
import sys
import time

import ready

NEXT = 8  # offset in PyThreadState


def close_ring(*_):
    """No thread may begin or end after this."""
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    state = ctypes.pythonapi.PyThreadState_Get()
    ctypes.c_uint64.from_address(state + NEXT).value = state


signal.signal(signal.SIGUSR1, close_ring)
if sys.argv[1:] != ["later"]:
    close_ring()
ready.announce()
while True:
    time.sleep(0.001)
