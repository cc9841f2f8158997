#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""default_signals.py COMMAND...: runs COMMAND with the signals as a shell in a terminal sets them.

Under nohup(1), or in the background of a script, some signals are ignored, and every child
inherits that. A caller that ignores SIGHUP wants to outlive the terminal: COMMAND then gets its
own session, because otherwise its children would die of the signal.
"""
import os
import signal
import sys

hangs_up = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
signal.pthread_sigmask(signal.SIG_SETMASK, ())
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_DFL)
if not hangs_up and os.getpgrp() != os.getpid():
    os.setsid()
os.execvp(sys.argv[1], sys.argv[1:])
