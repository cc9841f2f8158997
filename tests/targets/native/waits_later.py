# SPDX-License-Identifier: MIT
"""Waits for a second, and then for ever in a library that it loads then."""
import time

import ready


def wait_in_library():
    import ctypes
    ctypes.CDLL(None).poll(None, 0, -1)


ready.announce()
time.sleep(1)
wait_in_library()
