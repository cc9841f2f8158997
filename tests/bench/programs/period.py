# SPDX-License-Identifier: MIT
"""Works for 3 ms of every 10 ms, in step with the clock, and sleeps for the rest.

Possible stacks: <module>; tick, then nothing, work or rest. work takes 30 % of the time.
"""
import time

import ready

PERIOD_S = 0.01
WORK_S = 0.003


def work(begin):
    while time.monotonic() - begin < WORK_S:
        pass


def rest(until):
    time.sleep(max(until - time.monotonic(), 0))


def tick():
    ready.announce()
    while True:
        begin = time.monotonic()
        work(begin)
        rest((begin // PERIOD_S + 1) * PERIOD_S)


tick()
