/* SPDX-License-Identifier: MIT */
/*
 * A program that embeds CPython. Its arguments are commands:
 *
 *	load FILE     dlopen() a libpython; later commands use that one
 *	home FOLDER   set PYTHONHOME
 *	wait          print "waiting", and go on after a line of input
 *	begin         Py_InitializeEx()
 *	run SCRIPT    run it and exit
 *	hand SCRIPT   the same in another thread, which has taken over the main thread's state;
 *		      each on its own CPU, if there are two, and the main one sleeps
 *	pass SCRIPT   the same, but the main thread works, without Python
 *	make SCRIPT   as pass, in a state that the main thread has made for the other one
 *	apart SCRIPT  run it in the main thread, on a C stack that belongs to no thread (glibc only)
 *
 * With STATIC_PYTHON defined one is linked into the program, and load is not needed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

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

/* What the other thread gets, and in which way. */
struct handed {
	void *library;
	void *state;
	const char *script;
	bool is_made, is_busy;
};

static void stay_on(int number)
{
	cpu_set_t usual, cpus;

	sched_getaffinity(0, sizeof(usual), &usual);
	CPU_ZERO(&cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE && number >= 0; cpu++)
		if (CPU_ISSET(cpu, &usual) && !number--)
			CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void *run_handed(void *context)
{
	const struct handed *handed = context;

	stay_on(1);
	((void (*)(void *))function(handed->library, handed->is_made ? "PyEval_AcquireThread"
								     : "PyEval_RestoreThread"))(
		handed->state);
	run(handed->library, handed->script);
	return NULL;
}

/* A state for the other thread, made by this one. */
static void *make_state(void *library)
{
	void *interpreter = ((void *(*)(void))function(library, "PyInterpreterState_Head"))();

	return ((void *(*)(void *))function(library, "PyThreadState_New"))(interpreter);
}

static void hand(struct handed handed)
{
	void *made, *begin_threads = dlsym(handed.library, "PyEval_InitThreads");
	pthread_t thread;

	/* Needed only in 3.6, which has no GIL until then. */
	if (begin_threads)
		((void (*)(void))begin_threads)();
	made = handed.is_made ? make_state(handed.library) : NULL;
	handed.state = ((void *(*)(void))function(handed.library, "PyEval_SaveThread"))();
	if (made)
		handed.state = made;
	pthread_create(&thread, NULL, run_handed, &handed);
	stay_on(0);
	while (handed.is_busy)
		__asm__ volatile("" ::: "memory");
	pthread_join(thread, NULL);
}

#ifdef __GLIBC__
/* makecontext() passes only integers. */
static void *apart_library;
static const char *apart_script;

static void run_apart(void)
{
	run(apart_library, apart_script);
}

static void apart(void *library, const char *script)
{
	enum { STACK_BYTES = 8 << 20 };
	static ucontext_t usual, context;

	apart_library = library;
	apart_script = script;
	getcontext(&context);
	context.uc_stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&context, run_apart, 0);
	swapcontext(&usual, &context);
}
#else
static void apart(void *library, const char *script)
{
	(void)library, (void)script;
	exit(1); /* musl has no contexts */
}
#endif

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
		} else if (strcmp(argv[i], "apart") == 0 && i + 1 < argc) {
			apart(library, argv[++i]);
		} else if (strcmp(argv[i], "hand") == 0 && i + 1 < argc) {
			hand((struct handed){library, NULL, argv[++i], false, false});
		} else if (strcmp(argv[i], "pass") == 0 && i + 1 < argc) {
			hand((struct handed){library, NULL, argv[++i], false, true});
		} else if (strcmp(argv[i], "make") == 0 && i + 1 < argc) {
			hand((struct handed){library, NULL, argv[++i], true, true});
		}
	}
	return 0;
}
