# SPDX-License-Identifier: MIT
"""The two chains of alternating.py in several threads at once, for ever: VARIANT LEAF_STEPS
NR_THREADS NR_TURNS [DEPTH]. A thread ends after NR_TURNS turns and starts the next thread before
that. DEPTH calls of dive() are below each chain.
"""
import sys
import time
import _thread

import alternating
import ready

NR_THREADS, NR_TURNS = int(sys.argv[3]), int(sys.argv[4])
DEPTH = int(sys.argv[5]) if len(sys.argv) > 5 else 0


def take_turns():
    dive(DEPTH, *alternating.own_chains())
    _thread.start_new_thread(take_turns, ())


def dive(depth, first, second):
    if depth:
        dive(depth - 1, first, second)
        return
    for _ in range(NR_TURNS):
        first()
        second()


for _ in range(NR_THREADS):
    _thread.start_new_thread(take_turns, ())
ready.announce()
while True:
    time.sleep(1)
