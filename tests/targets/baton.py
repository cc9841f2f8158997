# SPDX-License-Identifier: MIT
"""Forty threads that run one after the other, a few milliseconds each, the first one longer.

For each SIGUSR1 it prints a line of JSON: which share of the time since the line before each
thread has worked. Runs on CPython 3.6 and newer.
"""
import json
import os
import signal
import sys
import threading
import time

NR_THREADS = 40
BATON_S = 0.012


def work(until):
    while time.perf_counter() < until:
        sum(range(50))


def run(index, batons, held):
    """Works while it has the baton; thread 0 four times as long as any other."""
    nr_units = 4 if index == 0 else 1
    while True:
        batons[index].acquire()
        begin = time.perf_counter()
        work(begin + nr_units * BATON_S)
        held[index] += time.perf_counter() - begin
        batons[(index + 1) % NR_THREADS].release()


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    batons = [threading.Semaphore(0) for _ in range(NR_THREADS)]
    held = [0] * NR_THREADS
    for index in range(NR_THREADS):
        threading.Thread(target=run, args=(index, batons, held), name="baton-%d" % index, daemon=True).start()
    batons[0].release()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    begin = time.perf_counter()
    while True:
        signal.sigwait([signal.SIGUSR1])
        end = time.perf_counter()
        shares = [seconds / (end - begin) for seconds in held]
        held[:] = [0] * NR_THREADS
        begin = end
        print(json.dumps(shares), flush=True)


sys.exit(main())
