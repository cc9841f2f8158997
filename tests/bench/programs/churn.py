# SPDX-License-Identifier: MIT
"""Compiles functions, calls them a few times and drops them, so that code objects come and
go at the same addresses. Each pair has its own number.

Possible stacks: <module>; churn, then nothing, <module> (which makes the functions), or
the beginning of fresh_N; inner_N; leaf.
"""
import ready

TEMPLATE = """
def inner_{0}():
    leaf()


def fresh_{0}():
    inner_{0}()
"""


def leaf():
    n = 0
    while n < 8:
        n += 1


def churn():
    ready.announce()
    number = 0
    while True:
        number = (number + 1) % 1000
        space = {"leaf": leaf}
        exec(compile(TEMPLATE.format(number), "fresh", "exec"), space)
        fresh = space["fresh_%d" % number]
        for _ in range(20):
            fresh()
        del fresh
        space.clear()  # they refer to each other


churn()
