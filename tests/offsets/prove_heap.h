/* SPDX-License-Identifier: MIT */
/* The proof of a version whose frames are objects, 3.6 to 3.10; TABLE is its table's name. */
#pragma once

#include "sampler/python/offsets_tables_heap.h"
#include "tests/offsets/prove.h"

#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>

#if PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif

#if PY_VERSION_HEX >= 0x03070000
#include "tests/offsets/prove_gil.h"
#endif

#include "tests/offsets/prove_values.h"

/* PyASCIIObject.state as the word that is read, to see at which bit a field lies. */
union unicode_state {
	__typeof__(((PyASCIIObject *)0)->state) fields;
	uint32_t word;
};

#if PY_VERSION_HEX >= 0x030a0000
#define STATE_OFFSET offsetof(PyFrameObject, f_state)
#define EXECUTING    FRAME_EXECUTING
#define LINES_OFFSET offsetof(PyCodeObject, co_linetable)
#else
#define STATE_OFFSET offsetof(PyFrameObject, f_executing)
#define EXECUTING    1 /* _PyEval_EvalFrameDefault() */
#define LINES_OFFSET offsetof(PyCodeObject, co_lnotab)
#endif

/* Objects/dict-common.h of 3.6 to 3.10, which is not installed: copied. */
struct dict_keys {
	Py_ssize_t dk_refcnt;
	Py_ssize_t dk_size;
	void *dk_lookup;
	Py_ssize_t dk_usable;
	Py_ssize_t dk_nentries;
	char dk_indices[];
};

static const struct py_offsets truth = {
#if PY_VERSION_HEX >= 0x03070000
	.runtime =
		{
			.size = sizeof(_PyRuntimeState),
#if PY_VERSION_HEX >= 0x03090000
			.finalizing = offsetof(_PyRuntimeState, _finalizing),
#else
			.finalizing = offsetof(_PyRuntimeState, finalizing),
#endif
			.interpreters_head = offsetof(_PyRuntimeState, interpreters.head),
			.gil_locked = offsetof(_PyRuntimeState, ceval.gil.locked),
			.gil_last_holder = offsetof(_PyRuntimeState, ceval.gil.last_holder),
#if PY_VERSION_HEX < 0x03090000
			.gc = offsetof(_PyRuntimeState, gc),
#else
			.gc = OFFSET_ABSENT,
#endif
		},
#else
	.runtime =
		{
			.size = sizeof(PyInterpreterState *),
			.finalizing = OFFSET_ABSENT,
			.interpreters_head = 0,
			.gil_locked = OFFSET_ABSENT,
			.gil_last_holder = OFFSET_ABSENT,
			.gc = OFFSET_ABSENT,
		},
#endif
	.interpreter =
		{
			.size = sizeof(PyInterpreterState),
#if PY_VERSION_HEX >= 0x03070000
			.id = offsetof(PyInterpreterState, id),
#else
			.id = OFFSET_ABSENT,
#endif
			.next = offsetof(PyInterpreterState, next),
			.threads_head = offsetof(PyInterpreterState, tstate_head),
			.modules = offsetof(PyInterpreterState, modules),
			.gil_locked = OFFSET_ABSENT,
			.gil_last_holder = OFFSET_ABSENT,
			.code_object_generation = OFFSET_ABSENT,
			.next_code_version = OFFSET_ABSENT,
#if PY_VERSION_HEX >= 0x03090000
			.gc = offsetof(PyInterpreterState, gc),
#else
			.gc = OFFSET_ABSENT,
#endif
		},
	.gc =
		{
#if PY_VERSION_HEX >= 0x03070000
			.collecting = offsetof(struct _gc_runtime_state, collecting),
#else
			.collecting = OFFSET_ABSENT, /* a variable of Modules/gcmodule.c */
#endif
			.frame = OFFSET_ABSENT,
		},
	.thread =
		{
			.size = sizeof(PyThreadState),
			.next = offsetof(PyThreadState, next),
			.interp = offsetof(PyThreadState, interp),
			.current_frame = offsetof(PyThreadState, frame),
#if PY_VERSION_HEX >= 0x030a0000
			.cframe = offsetof(PyThreadState, cframe),
#else
			.cframe = OFFSET_ABSENT,
#endif
			.base_frame = OFFSET_ABSENT,
			.last_profiled_frame = OFFSET_ABSENT,
			.last_profiled_frame_seq = OFFSET_ABSENT,
			.thread_id = offsetof(PyThreadState, thread_id),
			.native_thread_id = OFFSET_ABSENT,
#if PY_VERSION_HEX >= 0x03070000
			.unique_id = offsetof(PyThreadState, id),
#else
			.unique_id = OFFSET_ABSENT,
#endif
			.datastack_chunk = OFFSET_ABSENT,
			.datastack_top = OFFSET_ABSENT,
			.gil_requested = OFFSET_ABSENT,
			.raised = offsetof(PyThreadState, curexc_type),
#if PY_VERSION_HEX >= 0x03070000
			.exc_info = offsetof(PyThreadState, exc_info),
			.exc_state = offsetof(PyThreadState, exc_state),
#else
			.exc_info = OFFSET_ABSENT,
			.exc_state = offsetof(PyThreadState, exc_type),
#endif
		},
	.exc_item =
		{
#if PY_VERSION_HEX >= 0x03070000
			.value = offsetof(_PyErr_StackItem, exc_type),
			.previous = offsetof(_PyErr_StackItem, previous_item),
#else
			.value = 0,
			.previous = OFFSET_ABSENT,
#endif
		},
	.cframe =
		{
			.current_frame = OFFSET_ABSENT,
#if PY_VERSION_HEX >= 0x030a0000
			.previous = offsetof(CFrame, previous),
#else
			.previous = OFFSET_ABSENT,
#endif
		},
	.frame =
		{
			.size = sizeof(PyFrameObject),
			.executable = offsetof(PyFrameObject, f_code),
			.previous = offsetof(PyFrameObject, f_back),
			.instr_ptr = OFFSET_ABSENT,
			.lasti = offsetof(PyFrameObject, f_lasti),
			.state = STATE_OFFSET,
			.stacktop = OFFSET_ABSENT,
			.is_entry = OFFSET_ABSENT,
			.stackpointer = OFFSET_ABSENT,
			.owner = OFFSET_ABSENT,
			.localsplus = OFFSET_ABSENT,
			.heap_locals = offsetof(PyFrameObject, f_localsplus),
		},
	.generator = {.iframe = OFFSET_ABSENT},
	.chunk =
		{
			.previous = OFFSET_ABSENT,
			.size = OFFSET_ABSENT,
			.top = OFFSET_ABSENT,
			.data = OFFSET_ABSENT,
		},
	.code =
		{
			.size = sizeof(PyCodeObject),
			.ob_size = OFFSET_ABSENT,
			.filename = offsetof(PyCodeObject, co_filename),
			.qualname = offsetof(PyCodeObject, co_name),
			.linetable = LINES_OFFSET,
			.firstlineno = offsetof(PyCodeObject, co_firstlineno),
			.framesize = OFFSET_ABSENT,
			.nlocalsplus = OFFSET_ABSENT,
			.stacksize = OFFSET_ABSENT,
			.version = OFFSET_ABSENT,
			.firsttraceable = OFFSET_ABSENT,
			.code_adaptive = OFFSET_ABSENT,
			.argcount = offsetof(PyCodeObject, co_argcount),
			.names = offsetof(PyCodeObject, co_varnames),
			.kinds = OFFSET_ABSENT,
			.bytecode = offsetof(PyCodeObject, co_code),
			.kwonlyargcount = offsetof(PyCodeObject, co_kwonlyargcount),
			.flags = offsetof(PyCodeObject, co_flags),
			.cellvars = offsetof(PyCodeObject, co_cellvars),
			.freevars = offsetof(PyCodeObject, co_freevars),
		},
	.object =
		{
			.ob_type = offsetof(PyObject, ob_type),
			.tp_name = offsetof(PyTypeObject, tp_name),
		},
	.type =
		{
			.flags = offsetof(PyTypeObject, tp_flags),
			.basicsize = offsetof(PyTypeObject, tp_basicsize),
			.dictoffset = offsetof(PyTypeObject, tp_dictoffset),
			.cached_keys = offsetof(PyHeapTypeObject, ht_cached_keys),
		},
	.instance = {.dict_before = OFFSET_ABSENT, .values_before = OFFSET_ABSENT},
	.dict =
		{
			.keys = offsetof(PyDictObject, ma_keys),
			.values = offsetof(PyDictObject, ma_values),
		},
	.dict_keys =
		{
			.size = offsetof(struct dict_keys, dk_size),
			.log2_size = OFFSET_ABSENT,
			.log2_index_bytes = OFFSET_ABSENT,
			.kind = OFFSET_ABSENT,
			.nr_entries = offsetof(struct dict_keys, dk_nentries),
			.indices = offsetof(struct dict_keys, dk_indices),
		},
	.dict_values = {.valid = OFFSET_ABSENT, .values = 0},
	.integer =
		{
			.size = offsetof(PyVarObject, ob_size),
			.digits = offsetof(PyLongObject, ob_digit),
		},
	.unicode =
		{
			.length = offsetof(PyASCIIObject, length),
			.state = offsetof(PyASCIIObject, state),
			.state_kind_shift = 2,
			.ascii_data = sizeof(PyASCIIObject),
			.compact_data = sizeof(PyCompactUnicodeObject),
			.data = offsetof(PyUnicodeObject, data),
		},
	.bytes =
		{
			.ob_size = offsetof(PyBytesObject, ob_base.ob_size),
			.ob_sval = offsetof(PyBytesObject, ob_sval),
		},
};

void prove_tables(void)
{
	const union unicode_state kind_one = {.fields = {.kind = 1}};

	prove_offsets(&TABLE.offsets, &truth);
	prove(TABLE.minor, PY_MINOR_VERSION);
	prove(TABLE.traits.executing, EXECUTING);
	prove(TABLE.traits.tuple_items_after_type, BEHIND_TYPE(PyTupleObject, ob_item));
	prove(TABLE.traits.qualname_after_type, BEHIND_TYPE(PyFunctionObject, func_qualname));
	prove(TABLE.traits.oserror_errno_after_type, BEHIND_TYPE(PyOSErrorObject, myerrno));
	prove(kind_one.word, 1u << 2);
}
