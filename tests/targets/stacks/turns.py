# SPDX-License-Identifier: MIT
"""Uses the CPU for some seconds and waits for others, in turns: turns.py SPIN_S WAIT_S.

Possible stacks: <module>; main; and spin or wait.
"""
import sys
import time

import ready


def used_s():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def spin(seconds):
    end = used_s() + seconds
    while used_s() < end:
        pass


def wait(seconds):
    time.sleep(seconds)


def main(spin_s, wait_s):
    while True:
        spin(spin_s)
        wait(wait_s)


ready.announce()
main(float(sys.argv[1]), float(sys.argv[2]))
