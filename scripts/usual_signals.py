#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usual_signals.py COMMAND...: runs it with the signals as a shell in a terminal gives them.

Under nohup(1), or behind the `&` of a script, some are ignored, and so they are by every child
that does not say otherwise. Who ignores SIGHUP wants to live on without the terminal: COMMAND
gets a session of its own, or else its children died of the signal.
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
