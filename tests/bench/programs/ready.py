# SPDX-License-Identifier: MIT
"""What every program shares: the line that it prints when it has reached the loop in which it
stays, and how often that loop runs."""
import itertools


def announce():
    print("ready", flush=True)


def rounds():
    """For a loop that runs for ever; pairs.py limits it. Adds no frame to a stack."""
    return itertools.repeat(None)
