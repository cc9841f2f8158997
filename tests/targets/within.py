# SPDX-License-Identifier: MIT
"""One thread that has three interpreters beside the main one, and runs all the time: what the main
one has it do ("main"), or what the second one does, which the main one has called ("second")."""
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
