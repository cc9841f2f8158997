/* SPDX-License-Identifier: MIT */
/*
 * What the proofs of 3.13 and newer share: where each number stands in
 * _Py_DebugOffsets, and the constants relative to fields that it does tell.
 */
#pragma once

#include "tests/offsets/prove.h"
#include "tests/offsets/prove_executables.h"
#include "tests/offsets/prove_python.h"

#define AT(field) offsetof(struct _Py_DebugOffsets, field)

static const struct py_offsets debug_offsets_truth = {
	.runtime =
		{
			.size = AT(runtime_state.size),
			.finalizing = AT(runtime_state.finalizing),
			.interpreters_head = AT(runtime_state.interpreters_head),
		},
	.interpreter =
		{
			.size = AT(interpreter_state.size),
			.id = AT(interpreter_state.id),
			.next = AT(interpreter_state.next),
			.threads_head = AT(interpreter_state.threads_head),
			.modules = AT(interpreter_state.imports_modules),
			.gil_locked = AT(interpreter_state.gil_runtime_state_locked),
			.gil_last_holder = AT(interpreter_state.gil_runtime_state_holder),
#if PY_VERSION_HEX >= 0x030e0000
			.code_object_generation = AT(interpreter_state.code_object_generation),
#endif
			.gc = AT(interpreter_state.gc),
		},
	.gc =
		{
			.collecting = AT(gc.collecting),
#if PY_VERSION_HEX >= 0x030f0000
			.frame = AT(gc.frame),
#endif
		},
	.thread =
		{
			.size = AT(thread_state.size),
			.next = AT(thread_state.next),
			.interp = AT(thread_state.interp),
			.current_frame = AT(thread_state.current_frame),
#if PY_VERSION_HEX >= 0x030f0000
			.base_frame = AT(thread_state.base_frame),
			.last_profiled_frame = AT(thread_state.last_profiled_frame),
			.last_profiled_frame_seq = AT(thread_state.last_profiled_frame_seq),
#endif
			.thread_id = AT(thread_state.thread_id),
			.native_thread_id = AT(thread_state.native_thread_id),
			.datastack_chunk = AT(thread_state.datastack_chunk),
#if PY_VERSION_HEX >= 0x030f0000
			.gil_requested = AT(thread_state.gil_requested),
			.raised = AT(thread_state.current_exception),
			.exc_state = AT(thread_state.exc_state),
#endif
		},
#if PY_VERSION_HEX >= 0x030f0000
	.exc_item = {.value = AT(err_stackitem.exc_value)},
#endif
	.frame =
		{
			.size = AT(interpreter_frame.size),
			.previous = AT(interpreter_frame.previous),
			.executable = AT(interpreter_frame.executable),
			.instr_ptr = AT(interpreter_frame.instr_ptr),
			.localsplus = AT(interpreter_frame.localsplus),
			.owner = AT(interpreter_frame.owner),
#if PY_VERSION_HEX >= 0x030e0000
			.stackpointer = AT(interpreter_frame.stackpointer),
#endif
		},
#if PY_VERSION_HEX >= 0x030e0000
	.generator = {.iframe = AT(gen_object.gi_iframe),
		      .frame_state = AT(gen_object.gi_frame_state)},
#endif
	.code =
		{
			.size = AT(code_object.size),
			.filename = AT(code_object.filename),
			.qualname = AT(code_object.qualname),
			.linetable = AT(code_object.linetable),
			.firstlineno = AT(code_object.firstlineno),
			.argcount = AT(code_object.argcount),
			.names = AT(code_object.localsplusnames),
			.kinds = AT(code_object.localspluskinds),
			.code_adaptive = AT(code_object.co_code_adaptive),
		},
	.object = {.ob_type = AT(pyobject.ob_type), .tp_name = AT(type_object.tp_name)},
	.type =
		{
			.flags = AT(type_object.tp_flags),
#if PY_VERSION_HEX >= 0x030f0000
			.basicsize = AT(type_object.tp_basicsize),
			.dictoffset = AT(type_object.tp_dictoffset),
			.cached_keys = AT(heap_type_object.ht_cached_keys),
#endif
		},
	.dict = {.keys = AT(dict_object.ma_keys), .values = AT(dict_object.ma_values)},
	.integer = {.size = AT(long_object.lv_tag), .digits = AT(long_object.ob_digit)},
	.unicode =
		{
			.state = AT(unicode_object.state),
			.length = AT(unicode_object.length),
			.ascii_data = AT(unicode_object.asciiobject_size),
#if PY_VERSION_HEX >= 0x030f0000
			.compact_data = AT(unicode_object.compactunicodeobject_size),
#endif
		},
	.bytes = {.ob_size = AT(bytes_object.ob_size), .ob_sval = AT(bytes_object.ob_sval)},
};

_Static_assert(AT(version) == 8 && AT(free_threaded) == 16, "what stands before the layouts");
_Static_assert(sizeof(_Py_Debug_Cookie) == 9, "the cookie has eight bytes");

_Static_assert(offsetof(PyCodeObject, co_framesize) ==
		       offsetof(PyCodeObject, co_firstlineno) + FRAMESIZE_AFTER_FIRSTLINENO,
	       "co_framesize");
_Static_assert(offsetof(PyCodeObject, co_nlocalsplus) ==
		       offsetof(PyCodeObject, co_firstlineno) + NLOCALSPLUS_AFTER_FIRSTLINENO,
	       "co_nlocalsplus");
_Static_assert(offsetof(PyCodeObject, co_kwonlyargcount) ==
		       offsetof(PyCodeObject, co_argcount) + KWONLYARGCOUNT_AFTER_ARGCOUNT,
	       "co_kwonlyargcount");
_Static_assert(offsetof(PyCodeObject, co_flags) ==
		       offsetof(PyCodeObject, co_argcount) - FLAGS_BEFORE_ARGCOUNT,
	       "co_flags");
_Static_assert(offsetof(PyCodeObject, co_version) ==
		       offsetof(PyCodeObject, co_firstlineno) + VERSION_AFTER_FIRSTLINENO,
	       "co_version");
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030e0000
_Static_assert(offsetof(PyCodeObject, _co_firsttraceable) ==
		       offsetof(PyCodeObject, co_tlbc) - FIRSTTRACEABLE_BEFORE_TLBC,
	       "_co_firsttraceable");
_Static_assert(offsetof(PyCodeObject, co_tlbc) == offsetof(PyCodeObject, co_code_adaptive) - 8,
	       "co_tlbc");
_Static_assert(offsetof(_PyCodeArray, size) == CODE_ARRAY_SIZE, "array of copies: size");
_Static_assert(offsetof(_PyCodeArray, entries) == CODE_ARRAY_ENTRIES, "array of copies: entries");
_Static_assert(sizeof(((PyInterpreterState *)0)->tlbc_indices.tlbc_generation) == 4,
	       "tlbc_generation");
enum { STATE_SHIFT = STATE_KIND_SHIFT_FREE_THREADED_3_14 };
#else
_Static_assert(offsetof(PyCodeObject, _co_firsttraceable) ==
		       offsetof(PyCodeObject, co_code_adaptive) -
			       FIRSTTRACEABLE_BEFORE_CODE_ADAPTIVE,
	       "_co_firsttraceable");
enum { STATE_SHIFT = STATE_KIND_SHIFT };
#endif
_Static_assert(offsetof(PyThreadState, datastack_top) ==
		       offsetof(PyThreadState, datastack_chunk) + DATASTACK_TOP_AFTER_CHUNK,
	       "datastack_top");
_Static_assert(sizeof(PyCompactUnicodeObject) ==
		       sizeof(PyASCIIObject) + COMPACT_DATA_AFTER_ASCII_DATA,
	       "the characters of a compact str");
_Static_assert(offsetof(PyTypeObject, tp_basicsize) ==
		       offsetof(PyTypeObject, tp_name) + BASICSIZE_AFTER_NAME,
	       "tp_basicsize");
_Static_assert(offsetof(PyTypeObject, tp_dictoffset) ==
		       offsetof(PyTypeObject, tp_flags) + DICTOFFSET_AFTER_FLAGS,
	       "tp_dictoffset");
#if PY_VERSION_HEX < 0x030f0000
_Static_assert(offsetof(PyHeapTypeObject, ht_cached_keys) ==
		       offsetof(PyTypeObject, tp_flags) + CACHED_KEYS_AFTER_FLAGS,
	       "ht_cached_keys");
#endif
#ifdef Py_GIL_DISABLED
_Static_assert(MANAGED_DICT_OFFSET == -INSTANCE_DICT_BEFORE_FREE_THREADED, "an instance's dict");
#else
_Static_assert(MANAGED_DICT_OFFSET == -INSTANCE_DICT_BEFORE, "an instance's dict");
#endif
_Static_assert(offsetof(PyDictKeysObject, dk_log2_size) == DICT_KEYS_LOG2_SIZE &&
		       offsetof(PyDictKeysObject, dk_log2_index_bytes) ==
			       DICT_KEYS_LOG2_INDEX_BYTES &&
		       offsetof(PyDictKeysObject, dk_kind) == DICT_KEYS_KIND &&
		       offsetof(PyDictKeysObject, dk_nentries) == DICT_KEYS_NR_ENTRIES &&
		       offsetof(PyDictKeysObject, dk_indices) == DICT_KEYS_INDICES,
	       "the keys of a dict");
_Static_assert(offsetof(struct _dictvalues, valid) == DICT_VALUES_VALID &&
		       offsetof(struct _dictvalues, values) == DICT_VALUES_VALUES,
	       "the values of a split table");
_Static_assert(offsetof(struct _dictvalues, capacity) == DICT_VALUES_CAPACITY &&
		       offsetof(struct _dictvalues, size) == DICT_VALUES_SIZE &&
		       SHARED_KEYS_MAX_SIZE == 30,
	       "the order of a split table");
_Static_assert(NON_SIZE_BITS == INTEGER_SIZE_SHIFT, "the digits of an int");
_Static_assert(offsetof(PyUnicodeObject, data) == sizeof(PyCompactUnicodeObject), "data.any");
_Static_assert(offsetof(PyCodeObject, ob_base.ob_size) ==
		       offsetof(PyObject, ob_type) + CODE_OB_SIZE_AFTER_TYPE,
	       "ob_size");
_Static_assert(offsetof(PyGenObject, gi_iframe) ==
		       offsetof(PyObject, ob_type) + GENERATOR_IFRAME_AFTER_TYPE,
	       "gi_iframe");
#ifdef Py_GIL_DISABLED
_Static_assert(offsetof(PyObject, ob_type) == 24, "ob_type");
enum { FREE_THREADED = 1 };
#else
_Static_assert(offsetof(PyObject, ob_type) == 8, "ob_type");
enum { FREE_THREADED = 0 };
#endif

/*
 * The table has one place of the counter for each kind of release build. Free-threaded ones of 3.14
 * and 3.15 had it elsewhere before they took mimalloc 2.5 over; in them, as in debug builds, it is
 * found by what comes next.
 */
#ifdef Py_DEBUG
enum { HAS_NEXT_CODE_VERSION_IN_PLACE = 0 };
#elif defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030e0000
enum { HAS_NEXT_CODE_VERSION_IN_PLACE = MI_MALLOC_VERSION >= 20502 };
#else
enum { HAS_NEXT_CODE_VERSION_IN_PLACE = 1 };
#endif

/* The pointer into dtoa's pool, by which a build's own place of the counter is found. */
_Static_assert(offsetof(PyInterpreterState, dtoa.preallocated_next) ==
		       offsetof(PyInterpreterState, func_state.next_version) / 8 * 8 - 8,
	       "what stands before func_state");
_Static_assert(offsetof(PyInterpreterState, dtoa.preallocated_next) -
			       offsetof(PyInterpreterState, dtoa.preallocated) ==
		       2304,
	       "dtoa's pool");
#if PY_VERSION_HEX < 0x030f0000
_Static_assert(offsetof(PyThreadState, current_exception) ==
		       offsetof(PyThreadState, current_frame) + RAISED_AFTER_CURRENT_FRAME,
	       "current_exception");
_Static_assert(offsetof(PyThreadState, exc_state) ==
		       offsetof(PyThreadState, datastack_chunk) + EXC_STATE_AFTER_CHUNK,
	       "exc_state");
_Static_assert(offsetof(_PyErr_StackItem, exc_value) == EXC_ITEM_VALUE, "exc_value");
#endif
_Static_assert(offsetof(PyThreadState, exc_info) ==
		       offsetof(PyThreadState, current_exception) + EXC_INFO_AFTER_RAISED,
	       "exc_info");
_Static_assert(offsetof(_PyErr_StackItem, previous_item) == EXC_ITEM_PREVIOUS, "previous_item");
_Static_assert(sizeof(((struct _gc_runtime_state *)0)->collecting) == 4, "collecting is an int");
_Static_assert(offsetof(_PyStackChunk, previous) == CHUNK_PREVIOUS, "chunk: previous");
_Static_assert(offsetof(_PyStackChunk, size) == CHUNK_SIZE, "chunk: size");
_Static_assert(offsetof(_PyStackChunk, top) == CHUNK_TOP, "chunk: top");
_Static_assert(offsetof(_PyStackChunk, data) == CHUNK_DATA, "chunk: data");
_Static_assert(FRAME_OWNED_BY_THREAD == 0 && FRAME_OWNED_BY_GENERATOR == 1, "owners");

/* Prove one layout, and what is the same for all three. */
static inline __attribute__((always_inline)) void
prove_layout(const struct debug_offsets_layout *layout)
{
	const union unicode_state kind_one = {.fields = {.kind = 1}};
	const union unicode_state compact = {.fields = {.compact = 1}};
	const union unicode_state ascii = {.fields = {.ascii = 1}};

	prove(layout->minor, PY_MINOR_VERSION);
	prove(layout->size, sizeof(struct _Py_DebugOffsets));
	prove_offsets(&layout->at, &debug_offsets_truth);
#if PY_VERSION_HEX >= 0x030e0000
	prove(layout->tlbc_at.code_array, AT(code_object.co_tlbc));
	prove(layout->tlbc_at.generation, AT(interpreter_state.tlbc_generation));
#else
	prove(layout->tlbc_at.code_array, 0);
	prove(layout->tlbc_at.generation, 0);
#endif
	if (HAS_NEXT_CODE_VERSION_IN_PLACE)
		prove(next_code_version_offsets[PY_MINOR_VERSION - 13][FREE_THREADED],
		      offsetof(PyInterpreterState, func_state.next_version));
	prove(QUALNAME_AFTER_TYPE, BEHIND_TYPE(PyFunctionObject, func_qualname));
	prove(kind_one.word, 1u << STATE_SHIFT);
	prove(compact.word, 1u << (STATE_SHIFT + 3));
	prove(ascii.word, 1u << (STATE_SHIFT + 4));
}
