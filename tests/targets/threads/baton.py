# SPDX-License-Identifier: MIT
"""Forty threads that run one after the other, a few milliseconds each, the first one longer.

Runs on CPython 3.6 and newer.
"""
import threading
import time

import ready

NR_THREADS = 40
BATON_S = 0.012


def work(until):
    while time.perf_counter() < until:
        sum(range(50))


def run(index, batons):
    """Works while it has the baton. Thread 0 works four times as long as any other."""
    nr_units = 4 if index == 0 else 1
    while True:
        batons[index].acquire()
        work(time.perf_counter() + nr_units * BATON_S)
        batons[(index + 1) % NR_THREADS].release()


def main():
    batons = [threading.Semaphore(0) for _ in range(NR_THREADS)]
    for index in range(NR_THREADS):
        threading.Thread(target=run, args=(index, batons), name="baton-%d" % index,
                         daemon=True).start()
    batons[0].release()
    ready.announce()
    threading.Event().wait()


main()
