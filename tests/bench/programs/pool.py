# SPDX-License-Identifier: MIT
"""A pool of eight threads that works off tasks of 50 to 500 µs, each a function of its own;
there are always two tasks for every thread.

The stacks of a thread that works end in task_N; spin, where task_N takes N of 55 parts of the
time. The others wait for a task, and the main thread waits for a result.
"""
import collections
import concurrent.futures
import itertools

import ready

NR_THREADS = 8
STEPS = 3000


def spin(steps):
    n = 0
    while n < steps:
        n += 1


def task_1():
    spin(1 * STEPS)


def task_2():
    spin(2 * STEPS)


def task_3():
    spin(3 * STEPS)


def task_4():
    spin(4 * STEPS)


def task_5():
    spin(5 * STEPS)


def task_6():
    spin(6 * STEPS)


def task_7():
    spin(7 * STEPS)


def task_8():
    spin(8 * STEPS)


def task_9():
    spin(9 * STEPS)


def task_10():
    spin(10 * STEPS)


TASKS = [task_1, task_2, task_3, task_4, task_5, task_6, task_7, task_8, task_9, task_10]


def main():
    tasks = itertools.cycle(TASKS)
    with concurrent.futures.ThreadPoolExecutor(NR_THREADS) as pool:
        futures = collections.deque()
        for _ in range(2 * NR_THREADS):
            futures.append(pool.submit(next(tasks)))
        ready.announce()
        for _ in ready.rounds():
            futures.popleft().result()
            futures.append(pool.submit(next(tasks)))


main()
