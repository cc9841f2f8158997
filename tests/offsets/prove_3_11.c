/* SPDX-License-Identifier: MIT */
#include "tests/offsets/prove.h"
#include "tests/offsets/prove_executables.h"
#include "tests/offsets/prove_python.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030b, "the headers of 3.11");
_Static_assert(FRAME_SPECIALS_SIZE == 9, "extra_frame_words");
_Static_assert(FRAME_OWNED_BY_THREAD == 0 && FRAME_OWNED_BY_GENERATOR == 1, "owners");
_Static_assert(sizeof(((_PyInterpreterFrame *)0)->stacktop) == 4, "stacktop is an int");
_Static_assert(sizeof(((_PyRuntimeState *)0)->ceval.gil.locked) == 4, "locked is an int");
/* sampler/gil.h reads both, and the count of switches, as one piece. */
_Static_assert(offsetof(_PyRuntimeState, ceval.gil.locked) ==
		       offsetof(_PyRuntimeState, ceval.gil.last_holder) + 8,
	       "the GIL's words");

static const struct py_offsets truth = {
	.runtime =
		{
			.size = sizeof(_PyRuntimeState),
			.finalizing = offsetof(_PyRuntimeState, _finalizing),
			.interpreters_head = offsetof(_PyRuntimeState, interpreters.head),
			.gil_locked = offsetof(_PyRuntimeState, ceval.gil.locked),
			.gil_last_holder = offsetof(_PyRuntimeState, ceval.gil.last_holder),
			.gc = OFFSET_ABSENT,
		},
	.interpreter =
		{
			.size = sizeof(PyInterpreterState),
			.id = offsetof(PyInterpreterState, id),
			.next = offsetof(PyInterpreterState, next),
			.threads_head = offsetof(PyInterpreterState, threads.head),
			.modules = offsetof(PyInterpreterState, modules),
			.gil_locked = OFFSET_ABSENT,
			.gil_last_holder = OFFSET_ABSENT,
			.code_object_generation = OFFSET_ABSENT,
			.next_code_version = OFFSET_ABSENT,
			.gc = offsetof(PyInterpreterState, gc),
		},
	.gc =
		{
			.collecting = offsetof(struct _gc_runtime_state, collecting),
			.frame = OFFSET_ABSENT,
		},
	.thread =
		{
			.size = sizeof(PyThreadState),
			.next = offsetof(PyThreadState, next),
			.interp = offsetof(PyThreadState, interp),
			.current_frame = OFFSET_ABSENT,
			.cframe = offsetof(PyThreadState, cframe),
			.base_frame = OFFSET_ABSENT,
			.last_profiled_frame = OFFSET_ABSENT,
			.last_profiled_frame_seq = OFFSET_ABSENT,
			.thread_id = offsetof(PyThreadState, thread_id),
			.native_thread_id = offsetof(PyThreadState, native_thread_id),
			.unique_id = OFFSET_ABSENT,
			.datastack_chunk = offsetof(PyThreadState, datastack_chunk),
			.datastack_top = offsetof(PyThreadState, datastack_top),
			.gil_requested = OFFSET_ABSENT,
			.raised = offsetof(PyThreadState, curexc_type),
			.exc_info = offsetof(PyThreadState, exc_info),
			.exc_state = offsetof(PyThreadState, exc_state),
		},
	.exc_item =
		{
			.value = offsetof(_PyErr_StackItem, exc_value),
			.previous = offsetof(_PyErr_StackItem, previous_item),
		},
	.cframe =
		{
			.current_frame = offsetof(_PyCFrame, current_frame),
			.previous = offsetof(_PyCFrame, previous),
		},
	.frame =
		{
			.size = sizeof(_PyInterpreterFrame),
			.executable = offsetof(_PyInterpreterFrame, f_code),
			.previous = offsetof(_PyInterpreterFrame, previous),
			.instr_ptr = offsetof(_PyInterpreterFrame, prev_instr),
			.lasti = OFFSET_ABSENT,
			.state = OFFSET_ABSENT,
			.stacktop = offsetof(_PyInterpreterFrame, stacktop),
			.is_entry = offsetof(_PyInterpreterFrame, is_entry),
			.stackpointer = OFFSET_ABSENT,
			.owner = offsetof(_PyInterpreterFrame, owner),
			.localsplus = offsetof(_PyInterpreterFrame, localsplus),
			.heap_locals = OFFSET_ABSENT,
		},
	.generator = {.iframe = offsetof(PyGenObject, gi_iframe)},
	.chunk =
		{
			.previous = offsetof(_PyStackChunk, previous),
			.size = offsetof(_PyStackChunk, size),
			.top = offsetof(_PyStackChunk, top),
			.data = offsetof(_PyStackChunk, data),
		},
	.code =
		{
			.size = sizeof(PyCodeObject),
			.ob_size = offsetof(PyCodeObject, ob_base.ob_size),
			.filename = offsetof(PyCodeObject, co_filename),
			.qualname = offsetof(PyCodeObject, co_qualname),
			.linetable = offsetof(PyCodeObject, co_linetable),
			.firstlineno = offsetof(PyCodeObject, co_firstlineno),
			.framesize = OFFSET_ABSENT,
			.nlocalsplus = offsetof(PyCodeObject, co_nlocalsplus),
			.stacksize = offsetof(PyCodeObject, co_stacksize),
			.version = OFFSET_ABSENT,
			.firsttraceable = offsetof(PyCodeObject, _co_firsttraceable),
			.code_adaptive = offsetof(PyCodeObject, co_code_adaptive),
			.argcount = offsetof(PyCodeObject, co_argcount),
			.names = offsetof(PyCodeObject, co_localsplusnames),
			.kinds = offsetof(PyCodeObject, co_localspluskinds),
			.bytecode = OFFSET_ABSENT,
			.kwonlyargcount = offsetof(PyCodeObject, co_kwonlyargcount),
			.flags = offsetof(PyCodeObject, co_flags),
			.cellvars = OFFSET_ABSENT,
			.freevars = OFFSET_ABSENT,
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
	/* _PyObject_ManagedDictPointer(), _PyObject_ValuesPointer() */
	.instance = {.dict_before = -MANAGED_DICT_OFFSET, .values_before = 4 * sizeof(PyObject *)},
	.dict =
		{
			.keys = offsetof(PyDictObject, ma_keys),
			.values = offsetof(PyDictObject, ma_values),
		},
	.dict_keys =
		{
			.size = OFFSET_ABSENT,
			.log2_size = offsetof(PyDictKeysObject, dk_log2_size),
			.log2_index_bytes = offsetof(PyDictKeysObject, dk_log2_index_bytes),
			.kind = offsetof(PyDictKeysObject, dk_kind),
			.nr_entries = offsetof(PyDictKeysObject, dk_nentries),
			.indices = offsetof(PyDictKeysObject, dk_indices),
		},
	.dict_values = {.valid = OFFSET_ABSENT, .values = offsetof(struct _dictvalues, values)},
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

	prove_offsets(&version_3_11.offsets, &truth);
	prove(version_3_11.traits.qualname_after_type,
	      BEHIND_TYPE(PyFunctionObject, func_qualname));
	prove(version_3_11.traits.oserror_errno_after_type, BEHIND_TYPE(PyOSErrorObject, myerrno));
	prove(kind_one.word, 1u << 2);
}
