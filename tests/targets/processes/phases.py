# SPDX-License-Identifier: MIT
"""Works in before(), from the first SIGUSR1 on in meanwhile(), and from the second on in after().
Each function prints its name when it begins, and how often it has gone round when it ends."""
import signal
import sys

import ready

nr_signals = 0


def count(*_):
    global nr_signals
    nr_signals += 1


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def before():
    n = 0
    while nr_signals < 1:
        n += 1
    say("before %d" % n)


def meanwhile():
    n = 0
    say("meanwhile")
    while nr_signals < 2:
        n += 1
    say("meanwhile %d" % n)


def after():
    say("after")
    while True:
        sum(range(100))


signal.signal(signal.SIGUSR1, count)
ready.announce()
before()
meanwhile()
after()
