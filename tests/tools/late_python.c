/* SPDX-License-Identifier: MIT */
/*
 * late_python LIBRARY SECONDS: a program without Python that loads CPython's library after
 * SECONDS, starts an interpreter and runs a function `late` in it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void (*initialize)(int install_signal_handlers);
	int (*run)(const char *program);
	void *library;

	if (argc != 3)
		return 2;
	(void)usleep((useconds_t)(strtod(argv[2], NULL) * 1e6));
	library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		(void)fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&initialize = dlsym(library, "Py_InitializeEx");
	*(void **)&run = dlsym(library, "PyRun_SimpleString");
	if (!initialize || !run)
		return 1;
	(void)usleep(300000); /* loaded, but no interpreter yet */
	initialize(0);
	return run("import time\n"
		   "def late():\n"
		   "    while True:\n"
		   "        time.sleep(0.01)\n"
		   "late()\n");
}
