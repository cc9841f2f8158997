# SPDX-License-Identifier: MIT
"""Parks at every depth around the end of a data-stack chunk (16 KiB: 90 to 150 frames)."""
import parking


def descend(depth, park):
    if depth:
        descend(depth - 1, park)
    else:
        park()


parking.main(parking.numbered(descend, range(88, 156)))
