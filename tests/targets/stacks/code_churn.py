# SPDX-License-Identifier: MIT
"""Functions that are compiled, run for a moment and thrown away, for ever.

The functions of generation N are called outer_N and inner_N, come from the file
"generation N", begin at the lines N % 1000 + 1 and + 2, and are called by caller_K with
K = N % 7. They are alike in everything else, so that each generation is made where the
one before was: a name that is kept too long shows in a stack whose parts do not belong
together.
"""
import ready

SOURCE = """\
def outer_{n}():
 def inner_{n}():
  x = 0
  while x < 3000:
   x += 1
 inner_{n}()
"""


def caller_0(function):
    function()


def caller_1(function):
    function()


def caller_2(function):
    function()


def caller_3(function):
    function()


def caller_4(function):
    function()


def caller_5(function):
    function()


def caller_6(function):
    function()


CALLERS = [caller_0, caller_1, caller_2, caller_3, caller_4, caller_5, caller_6]


def churn():
    n = 1000000
    while True:
        source = "\n" * (n % 1000) + SOURCE.format(n=n)
        namespace = {}
        exec(compile(source, "generation %d" % n, "exec"), namespace)
        CALLERS[n % 7](namespace["outer_%d" % n])
        n += 1


ready.announce()
churn()
