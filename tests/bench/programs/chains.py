# SPDX-License-Identifier: MIT
"""Two chains, six calls deep, that take turns for ever.

Possible stacks: <module>; alternate, then the beginning of a_0 … a_5 or of
b_0 … b_5. A stack that mixes them or lacks a link never existed.
"""
import ready


def a_0():
    a_1()


def a_1():
    a_2()


def a_2():
    a_3()


def a_3():
    a_4()


def a_4():
    a_5()


def a_5():
    n = 0
    while n < 8:
        n += 1


def b_0():
    b_1()


def b_1():
    b_2()


def b_2():
    b_3()


def b_3():
    b_4()


def b_4():
    b_5()


def b_5():
    n = 0
    while n < 8:
        n += 1


def alternate():
    ready.announce()
    while True:
        a_0()
        b_0()


alternate()
