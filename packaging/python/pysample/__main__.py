"""Executes the program that was installed with this package."""

import os
import sys
import sysconfig


def recorded_programs():
    """Where the installer says that it has put the program."""
    try:
        from importlib.metadata import files
        recorded = files("pysample") or []
    except ImportError:  # Python 3.7 and older, or there is no record
        return []
    return [str(file.locate()) for file in recorded if file.parts[-2:] == ("bin", "pysample")]


def find_program():
    """Its path, or None if it is gone."""
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(os.path.dirname(package), "bin"),  # pip install --target
               sysconfig.get_path("scripts"),
               sysconfig.get_path("scripts", "posix_user")]
    for program in recorded_programs() + [os.path.join(folder, "pysample") for folder in folders]:
        if os.access(program, os.X_OK):
            return program
    return None


program = find_program()
if program is None:
    sys.exit("pysample: the program is missing; install the package pysample again")
os.execv(program, [program] + sys.argv[1:])
