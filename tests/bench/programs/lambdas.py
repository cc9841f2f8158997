# SPDX-License-Identifier: MIT
"""Compiles about 10,000 functions a second, a hundred at a time, calls them many times and
drops them. Each function has its own number, which its caller and its lambda share.

Possible stacks: <module>; make, then nothing, <module> (which makes the functions), or the
beginning of call_N; made_N; <lambda>; leaf. From 3.11 on a lambda's name says whose it is.
"""
import ready

NR_PAIRS = 50
NR_NUMBERS = 10000
NR_CALLS = 400
TEMPLATE = """
def made_{0}():
    (lambda: leaf())()


def call_{0}():
    made_{0}()
"""


def leaf():
    n = 0
    while n < 30:
        n += 1


def make():
    ready.announce()
    first = 0
    while True:
        numbers = range(first, first + NR_PAIRS)
        space = {"leaf": leaf}
        exec("".join(map(TEMPLATE.format, numbers)), space)
        for number in numbers:
            call = space["call_%d" % number]
            for _ in range(NR_CALLS):
                call()
            del call
        space.clear()  # they refer to each other
        first = (first + NR_PAIRS) % NR_NUMBERS


make()
