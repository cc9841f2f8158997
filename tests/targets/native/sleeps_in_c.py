# SPDX-License-Identifier: MIT
"""Sleeps in C all the time."""
import time

import ready


def wait_in_c():
    time.sleep(3600)


ready.announce()
wait_in_c()
