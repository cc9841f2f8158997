# SPDX-License-Identifier: MIT
"""The main thread ends, at once or when it gets SIGUSR1, and leaves the work to another thread."""
import ctypes
import signal
import sys
import threading

import ready


def work():
    begun.wait()
    ready.announce(worker=ready.native_id())
    announced.set()
    while True:
        sum(range(100))


def until_signalled():
    while not signalled:
        sum(range(100))


begun, announced, signalled = threading.Event(), threading.Event(), []
signal.signal(signal.SIGUSR1, lambda *_: signalled.append(True))
threading.Thread(target=work).start()
begun.set()
announced.wait()
if len(sys.argv) > 1:
    until_signalled()
ctypes.CDLL(None).pthread_exit(None)
