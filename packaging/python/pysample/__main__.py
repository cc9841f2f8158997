"""Executes the program that was installed with this package."""

import os
import sys
import sysconfig


def find_program():
    """Its path: where this kind of installation has its scripts. None if it is gone."""
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(os.path.dirname(package), "bin"),  # pip install --target
               sysconfig.get_path("scripts"),
               sysconfig.get_path("scripts", "posix_user")]
    for folder in folders:
        program = os.path.join(folder, "pysample")
        if os.access(program, os.X_OK):
            return program
    return None


program = find_program()
if program is None:
    sys.exit("pysample: the program is missing; install the package pysample again")
os.execv(program, [program] + sys.argv[1:])
