# SPDX-License-Identifier: MIT
"""What every program shares: the one line that it prints when it has arrived where it stays,
and how often its loop goes round."""
import itertools


def announce():
    print("ready", flush=True)


def rounds():
    """For a loop that goes on for ever; pairs.py ends it. It adds no frame to a stack."""
    return itertools.repeat(None)
