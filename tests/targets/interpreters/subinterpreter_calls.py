# SPDX-License-Identifier: MIT
"""One thread that runs all the time and has three interpreters beside the main one. The main one
calls the work ("main"), or the second one does, which the main one has called ("second")."""
import sys

import ready
import subinterpreters

CODE = """\
def work():
    while True:
        sum(range(1000))

def begin():
    work()

begin()
"""


def call(run, interpreter):
    run(interpreter, CODE)


def work():
    while True:
        sum(range(1000))


def main():
    create, run = subinterpreters.interpreter_calls()
    interpreters = [create() for _ in range(3)]
    ready.announce()
    if sys.argv[1] == "second":
        call(run, interpreters[1])
    work()


main()
