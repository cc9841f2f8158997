# SPDX-License-Identifier: MIT
"""Functions of one line that are made, called and dropped for ever. Each is at the address of the
one before, with the same name, file and lines, but other instructions."""
import ready

BODIES = ["sum(range(3000))" + " + n" * count for count in range(6)]

ready.announce()
while True:
    for body in BODIES:
        eval("lambda n: " + body)(0)
