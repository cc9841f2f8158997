# SPDX-License-Identifier: MIT
"""Functions of one line that are made, called and dropped for ever: each lies where the one before
lay, with the same name, file and lines, and has other instructions."""
import ready

BODIES = ["sum(range(3000))" + " + n" * count for count in range(6)]

ready.announce()
while True:
    for body in BODIES:
        eval("lambda n: " + body)(0)
