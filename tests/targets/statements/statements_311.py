# SPDX-License-Identifier: MIT
"""What 3.11 was the first to compile; see statements.py."""
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
