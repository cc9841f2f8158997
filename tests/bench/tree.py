# SPDX-License-Identifier: MIT
"""How `attach -s` and `run -s` sample process trees: what it costs, whether shares of processes and
functions are right, and what is missed of processes that soon end.

Programs and the kernel account for the truth. The engines take turns, and in the next turn in
reverse order.
"""
from bench import tree_brief, tree_children, tree_cost, tree_shares

PARTS = (tree_cost, tree_shares, tree_children, tree_brief)


def measure(tools, interpreter, args):
    """Print the figures of each part as soon as they are known."""
    for part in PARTS:
        part.print_rows(interpreter, part.measure(tools, interpreter, args))
