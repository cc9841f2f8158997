/* SPDX-License-Identifier: MIT */
/*
 * A program that has CPython in it, by its commands:
 *
 *	load FILE     dlopen() a libpython; what follows is about that one
 *	home FOLDER   set PYTHONHOME
 *	wait          print "waiting", and go on when a line comes
 *	begin         Py_InitializeEx()
 *	run SCRIPT    run it; it does not come back
 *
 * With STATIC_PYTHON defined it is linked with one, and load is of no use.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef STATIC_PYTHON
void Py_InitializeEx(int signals);
int PyRun_SimpleFileExFlags(FILE *file, const char *name, int close, void *flags);
#endif

static void *function(void *library, const char *name)
{
#ifdef STATIC_PYTHON
	(void)library;
	return strcmp(name, "Py_InitializeEx") == 0 ? (void *)Py_InitializeEx
						    : (void *)PyRun_SimpleFileExFlags;
#else
	void *symbol = library ? dlsym(library, name) : NULL;

	if (!symbol) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return symbol;
#endif
}

static void run(void *library, const char *script)
{
	int (*run_file)(FILE * file, const char *name, int close, void *flags) =
		function(library, "PyRun_SimpleFileExFlags");

	exit(run_file(fopen(script, "r"), script, 1, NULL));
}

int main(int argc, char **argv)
{
	void *library = NULL;
	char line[8];

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "wait") == 0) {
			puts("waiting");
			fflush(stdout);
			if (!fgets(line, sizeof(line), stdin))
				return 1;
		} else if (strcmp(argv[i], "begin") == 0) {
			((void (*)(int))function(library, "Py_InitializeEx"))(0);
		} else if (strcmp(argv[i], "load") == 0 && i + 1 < argc) {
			library = dlopen(argv[++i], RTLD_NOW | RTLD_LOCAL);
			if (!library) {
				fprintf(stderr, "%s\n", dlerror());
				return 1;
			}
		} else if (strcmp(argv[i], "home") == 0 && i + 1 < argc) {
			setenv("PYTHONHOME", argv[++i], 1);
		} else if (strcmp(argv[i], "run") == 0 && i + 1 < argc) {
			run(library, argv[++i]);
		}
	}
	return 0;
}
