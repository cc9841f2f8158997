# SPDX-License-Identifier: MIT
"""The one line that every program prints when it has arrived where it stays."""


def announce():
    print("ready", flush=True)
