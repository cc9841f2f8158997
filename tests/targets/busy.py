# SPDX-License-Identifier: MIT
"""One thread that never leaves a flat loop, and two that sleep."""
import threading
import time

import ready


def sleep():
    while True:
        time.sleep(3600)


def spin():
    n = 0
    while True:
        n = (n + 1) % 1000003


for _ in range(2):
    threading.Thread(target=sleep, daemon=True).start()
ready.announce(function="spin")
spin()
