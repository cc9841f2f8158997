/* SPDX-License-Identifier: MIT */
/*
 * An extension module that links its own frames from the C stack, as compilers of Python code and
 * tracing helpers do: linked_frames.py builds stacks with it. tests/live/test_links.py compiles it
 * for each version, against its internal headers.
 *
 * In 3.11 and newer a struct _PyInterpreterFrame is linked. Before, it is a frame object, whose
 * executable must be a code object.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_code.h"
#include "internal/pycore_interpframe_structs.h"
#endif

#if PY_VERSION_HEX >= 0x030d0000
#define CURRENT_FRAME(thread) (thread)->current_frame
#else
#define CURRENT_FRAME(thread) (thread)->cframe->current_frame
#endif

struct link {
	struct _PyInterpreterFrame frame;
};

/* The first instruction of code at which a frame that has begun can be. */
static void *first_instruction(PyCodeObject *code)
{
	return _PyCode_CODE(code) + code->_co_firsttraceable;
}

static void link_frame(struct link *link, PyObject *executable, int owner)
{
	PyThreadState *thread = PyThreadState_Get();
	struct _PyInterpreterFrame *frame = &link->frame;
	void *instruction =
		PyCode_Check(executable) ? first_instruction((PyCodeObject *)executable) : NULL;

	memset(frame, 0, sizeof(*frame));
#if PY_VERSION_HEX >= 0x030e0000
	frame->f_executable.bits = (uintptr_t)executable | 1; /* borrowed */
	frame->f_funcobj.bits = 1;			      /* PyStackRef_NULL */
	frame->stackpointer = frame->localsplus;
	frame->instr_ptr = instruction;
#elif PY_VERSION_HEX >= 0x030d0000
	frame->f_executable = executable;
	frame->instr_ptr = instruction;
#else
	frame->f_code = (PyCodeObject *)executable;
	frame->prev_instr = instruction;
#endif
	frame->owner = (char)owner;
	frame->previous = CURRENT_FRAME(thread);
	/* Complete the frame before it can be seen: its place on the stack held another chain's. */
	__asm__ volatile("" ::: "memory");
	CURRENT_FRAME(thread) = frame;
}

static void unlink_frame(struct link *link)
{
	CURRENT_FRAME(PyThreadState_Get()) = link->frame.previous;
}
#else
struct link {
	PyFrameObject *frame;
};

static void link_frame(struct link *link, PyObject *executable, int owner)
{
	PyThreadState *thread = PyThreadState_Get();
	PyObject *globals = PyDict_New();

	(void)owner;
	link->frame = PyFrame_New(thread, (PyCodeObject *)executable, globals, NULL);
	Py_DECREF(globals);
	thread->frame = link->frame;
#if PY_VERSION_HEX >= 0x030a0000
	link->frame->f_state = FRAME_EXECUTING;
#else
	link->frame->f_executing = 1;
#endif
}

static void unlink_frame(struct link *link)
{
	PyThreadState_Get()->frame = link->frame->f_back;
#if PY_VERSION_HEX >= 0x030a0000
	link->frame->f_state = FRAME_CREATED;
#else
	link->frame->f_executing = 0;
#endif
	Py_DECREF(link->frame);
}
#endif

/* call(executable, owner, function, *args): call a function above a linked frame. */
static PyObject *module_call(PyObject *module, PyObject *args)
{
	Py_ssize_t nr = PyTuple_GET_SIZE(args);
	PyObject *rest, *result;
	struct link link;

	(void)module;
	if (nr < 3)
		return PyErr_Format(PyExc_TypeError, "executable, owner, function, ...");
	rest = PyTuple_GetSlice(args, 3, nr);
	if (!rest)
		return NULL;
	link_frame(&link, PyTuple_GET_ITEM(args, 0), (int)PyLong_AsLong(PyTuple_GET_ITEM(args, 1)));
	result = PyObject_Call(PyTuple_GET_ITEM(args, 2), rest, NULL);
	unlink_frame(&link);
	Py_DECREF(rest);
	return result;
}

/* park(executable, owner, descriptor): read from descriptor with a linked frame on top. */
static PyObject *module_park(PyObject *module, PyObject *args)
{
	PyObject *executable;
	int owner, descriptor;
	struct link link;
	char byte;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oii", &executable, &owner, &descriptor))
		return NULL;
	link_frame(&link, executable, owner);
	Py_BEGIN_ALLOW_THREADS(void) !read(descriptor, &byte, 1);
	Py_END_ALLOW_THREADS unlink_frame(&link);
	Py_RETURN_NONE;
}

/* spin(executable, owner, steps): work with a linked frame on top. */
static PyObject *module_spin(PyObject *module, PyObject *args)
{
	PyObject *executable;
	int owner;
	long steps;
	struct link link;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oil", &executable, &owner, &steps))
		return NULL;
	link_frame(&link, executable, owner);
	for (volatile long i = 0; i < steps; i++)
		;
	unlink_frame(&link);
	Py_RETURN_NONE;
}

struct thread_start {
	PyObject *executable;
	int owner, descriptor;
	_Atomic long tid;
};

static void *run_thread(void *argument)
{
	struct thread_start *start = argument;
	PyGILState_STATE state;
	struct link link;
	char byte;

	start->tid = syscall(SYS_gettid);
	state = PyGILState_Ensure();
	link_frame(&link, start->executable, start->owner);
	Py_BEGIN_ALLOW_THREADS(void) !read(start->descriptor, &byte, 1);
	Py_END_ALLOW_THREADS unlink_frame(&link);
	PyGILState_Release(state);
	return NULL;
}

/* thread(executable, owner, descriptor): park in a thread without other frames. Returns its id. */
static PyObject *module_thread(PyObject *module, PyObject *args)
{
	struct thread_start *start = PyMem_RawCalloc(1, sizeof(*start)); /* never freed */
	pthread_t thread;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oii", &start->executable, &start->owner, &start->descriptor))
		return NULL;
	Py_INCREF(start->executable);
	if (pthread_create(&thread, NULL, run_thread, start) != 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	(void)pthread_detach(thread);
	while (!start->tid)
		(void)sched_yield();
	return PyLong_FromLong(start->tid);
}

static PyMethodDef methods[] = {
	{"call", module_call, METH_VARARGS, NULL},
	{"park", module_park, METH_VARARGS, NULL},
	{"spin", module_spin, METH_VARARGS, NULL},
	{"thread", module_thread, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "frame_linker", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_frame_linker(void)
{
	return PyModule_Create(&definition);
}
