/* SPDX-License-Identifier: MIT */
/*
 * The short name of a process: its program, and the script or module that a Python runs, such as
 * "python3 worker.py" or "gunicorn app:wsgi". Other arguments are never part of it, because they
 * hold passwords.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/process.h"

/* A longer name is cut, between two UTF-8 characters. Names of programs and modules are short. */
enum { PROCESS_NAME_MAX_BYTES = 128 };

/*
 * Make the name from length bytes of /proc/PID/cmdline: arguments, each ended by NUL. The last NUL
 * may be missing. The name is terminated, and "" if the arguments give none. Its bytes are as in
 * the arguments: not escaped, and possibly not UTF-8.
 *
 *     python3 -X dev /srv/job.py --key …   python3 job.py
 *     python3 shop/manage.py runserver     python3 shop/manage.py  (as for app.py, main.py, …)
 *     python3 -Im http.server 80           python3 -m http.server
 *     python3 -c CODE                      python3 -c
 *     python3 /usr/bin/gunicorn app:wsgi   gunicorn app:wsgi       (a script without a suffix)
 *     python3 -c "from multiprocessing.spawn import …"             python3 (multiprocessing spawn)
 *     gunicorn: worker [app:wsgi]          the same                (a title)
 *     /usr/bin/uwsgi --ini …               uwsgi
 *
 * Of a server of web applications, and of celery and flask, the application is shown. It must look
 * like pkg.module:name, or be a module's name after -A or --app.
 *
 * A title is one string that the program wrote over its arguments, with setproctitle(3) or the
 * like. It is shown only if its first word ends with ':', and only up to the first word that looks
 * like an argument.
 *
 * Source: Programs/python.c and Python/getopt.c of CPython for the options.
 */
void process_name_format(const char *cmdline, size_t length, char name[PROCESS_NAME_MAX_BYTES]);

/*
 * The name of a process, from its arguments. Without any, e.g. because it is a zombie or a kernel
 * thread, it is the kernel's name for it (comm); "" if that is unknown, too.
 */
void process_name_read(const struct process *process, char name[PROCESS_NAME_MAX_BYTES]);

/*
 * Whether the first argument of the process names a Python, such as /usr/bin/python3. It may lie,
 * but anyone may read it, unlike the mappings.
 */
bool process_is_called_python(const struct process *process);
