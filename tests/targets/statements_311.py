# SPDX-License-Identifier: MIT
"""Statements that need 3.11 or newer; see statements.py."""
from statements import stated


@stated
def exception_groups(spot):
    try:
        raise ExceptionGroup("group", [
            spot(KeyError()),
            spot(OSError())])
    except* (
            spot(KeyError)):
        spot()
    except* \
            OSError as error:
        spot(
            error)
    finally:
        spot()
