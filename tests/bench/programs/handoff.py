# SPDX-License-Identifier: MIT
"""Eight threads pass a token round. The one that has it works for 20 to 200 µs with the GIL, passes
it on and waits for it. argv gives what it passes through: semaphores, queues or sockets.

The stacks of a thread that works are …work; burst_N; spin, where burst_N takes N of 36 parts of
the time. Those of a thread that waits, for the token or for the GIL, end in wait, receive or
send.
"""
import queue
import socket
import sys
import threading

import ready

NR_THREADS = 8
STEPS = 1300


def spin(steps):
    n = 0
    while n < steps:
        n += 1


def burst_1():
    spin(1 * STEPS)


def burst_2():
    spin(2 * STEPS)


def burst_3():
    spin(3 * STEPS)


def burst_4():
    spin(4 * STEPS)


def burst_5():
    spin(5 * STEPS)


def burst_6():
    spin(6 * STEPS)


def burst_7():
    spin(7 * STEPS)


def burst_8():
    spin(8 * STEPS)


BURSTS = [burst_1, burst_2, burst_3, burst_4, burst_5, burst_6, burst_7, burst_8]


class Semaphores:
    """A semaphore for each thread."""

    def __init__(self):
        self.semaphore = threading.Semaphore(0)

    def send(self):
        self.semaphore.release()

    def receive(self):
        self.semaphore.acquire()


class Queues:
    """A queue for each thread."""

    def __init__(self):
        self.queue = queue.Queue()

    def send(self):
        self.queue.put("token")

    def receive(self):
        self.queue.get()


class Sockets:
    """A pair of sockets for each thread."""

    def __init__(self):
        self.out, self.into = socket.socketpair()

    def send(self):
        self.out.send(b"t")

    def receive(self):
        self.into.recv(1)


KINDS = {"semaphores": Semaphores, "queues": Queues, "sockets": Sockets}


def work(burst, mine, following):
    for _ in ready.rounds():
        mine.receive()
        burst()
        following.send()


def main():
    hands = [KINDS[sys.argv[1]]() for _ in range(NR_THREADS)]
    followings = hands[1:] + hands[:1]
    for place in zip(BURSTS[1:], hands[1:], followings[1:]):
        threading.Thread(target=work, args=place).start()
    ready.announce()
    hands[0].send()
    work(BURSTS[0], hands[0], followings[0])


main()
