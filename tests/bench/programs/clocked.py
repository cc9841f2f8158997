# SPDX-License-Identifier: MIT
"""Works for about 30 % of the time, in step with a timer, and keeps its own account.

argv gives what it waits for, and for how many ms. It then works for 3/7 of that time, by the CPU
clock of its thread.

socket  recv() with SO_RCVTIMEO: the kernel's timer wheel, which turns with the tick
poll    poll() with a time-out
sleep   clock_nanosleep()
spin    nothing: it works in another function instead, for that many ms of its CPU time

Possible stacks: <module>; alternate, then nothing, work, or rest and what it calls, which may
be work.
"""
import mmap
import os
import select
import socket
import struct
import sys
import time

import ready

# Round; seconds in work(), by the thread's CPU clock and by wall time; seconds in all; round.
RECORD = struct.Struct("=QdddQ")
WORK_SHARE = 3 / 7  # of the time for which it rests


def work(seconds):
    """Work for that long by the CPU clock of the thread. Returns how long it was."""
    begin = now = time.thread_time()
    while now - begin < seconds:
        for _ in range(300):
            pass
        now = time.thread_time()
    return now - begin


def rest_of(kind, milliseconds):
    """Make rest(), which waits once."""
    seconds = milliseconds / 1000
    left, right = socket.socketpair()
    left.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                    struct.pack("@ll", 0, milliseconds * 1000))
    nothing = select.poll()

    def receive(_peer=right):
        try:
            left.recv(1)
        except BlockingIOError:
            pass

    def rest():
        wait()

    wait = {"socket": receive, "poll": lambda: nothing.poll(milliseconds),
            "sleep": lambda: time.sleep(seconds), "spin": lambda: work(seconds)}[kind]
    return rest


def alternate(kind, milliseconds, page):
    rest = rest_of(kind, milliseconds)
    # A program that never waits shares its CPU, so only its own CPU time counts.
    clock = time.thread_time if kind == "spin" else time.monotonic
    begin, worked, worked_wall, number = clock(), 0.0, 0.0, 0
    ready.announce()
    while True:
        begin_work = time.monotonic()
        worked += work(milliseconds * WORK_SHARE / 1000)
        worked_wall += time.monotonic() - begin_work
        rest()
        number += 1
        page[:RECORD.size] = RECORD.pack(number, worked, worked_wall, clock() - begin, number)


def map_account():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clocked.account")
    with open(path, "wb") as file:
        file.write(bytes(mmap.PAGESIZE))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), mmap.PAGESIZE)


alternate(sys.argv[1], int(sys.argv[2]), map_account())
