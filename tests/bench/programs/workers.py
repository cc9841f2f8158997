# SPDX-License-Identifier: MIT
"""Forks workers, and waits for ever.

argv gives what the workers do, and how many there are.

waiting  the first works, the others wait for a pipe
busy     all work
unequal  the n-th works for n ms of its CPU time in each 24 ms: eight of them for 36 ms

A worker works in four functions, which take 40, 30, 20 and 10 % of its time in work(). The length
of each call is random, so that none is in step with a sampler. It keeps an account in a file
beside it: its process id, then the CPU time in seconds, in each function and in all.

Possible stacks: <module>; then nothing, or start, then nothing, or, in a worker, wait, or
work_for_ever, then nothing, or work, then nothing or one of the four.

They are in a session of their own, as a service is: many kernels divide the CPUs between sessions
first, and pysample would otherwise get the share of one worker.
"""
import mmap
import os
import random
import signal
import sys
import time
from time import thread_time

import ready

SLOT = 8  # doubles in the account of a worker
ROUND_S = 0.002
PERIOD_S = 0.024


def parse(until):
    while thread_time() < until:
        for _ in range(100):
            pass


def compute(until):
    while thread_time() < until:
        for _ in range(100):
            pass


def render(until):
    while thread_time() < until:
        for _ in range(100):
            pass


def store(until):
    while thread_time() < until:
        for _ in range(100):
            pass


PARTS = (parse, 0.4), (compute, 0.3), (render, 0.2), (store, 0.1)


def work(seconds, account, chance):
    """Use about that much CPU time. A double is written at once, so that no reader sees a part."""
    for number, (function, share) in enumerate(PARTS, 1):
        begin = thread_time()
        function(begin + share * seconds * chance.uniform(0.5, 1.5))
        account[number] += thread_time() - begin
    account[len(PARTS) + 1] = thread_time()


def work_for_ever(parent, account, milliseconds=None):
    """Until the parent has ended. Sleeps after so many milliseconds, if given, in each period."""
    chance = random.Random(os.getpid())
    until = time.monotonic() + PERIOD_S * chance.random()
    while os.getppid() == parent:
        work(milliseconds / 1000 if milliseconds else ROUND_S, account, chance)
        if milliseconds:
            now = time.monotonic()
            until = max(until + PERIOD_S, now)  # what a busy machine has delayed is not made up
            time.sleep(until - now)


def wait(descriptor):
    os.read(descriptor, 1)


def start(kind, count, account):
    parent = os.getpid()
    reader, writer = os.pipe()  # its end is the parent's
    for index in range(count):
        if os.fork():
            continue
        os.close(writer)
        own = account[SLOT * index:SLOT * (index + 1)]
        own[0] = os.getpid()
        if kind == "waiting" and index > 0:
            wait(reader)
        else:
            work_for_ever(parent, own, index + 1 if kind == "unequal" else None)
        os._exit(0)
    while not all(account[::SLOT]):
        time.sleep(0.01)


def map_account(count):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers.account")
    with open(path, "wb") as file:
        file.write(bytes(8 * SLOT * count))
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8 * SLOT * count)).cast("d")


os.setsid()
start(sys.argv[1], int(sys.argv[2]), map_account(int(sys.argv[2])))
ready.announce()
while True:
    signal.pause()
