/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/find/build.h"
#include "sampler/cpython/find/build_check.h"

#define RUNTIME_ADDR 0x5500000000u
#define INTERP_ADDR  0x5600000000u
#define OBJECTS_ADDR 0x5700000000u

/* Offset of the sentinel frame of 3.15 in the fake thread state. */
#define BASE_FRAME_OFFSET 512
#define THREAD_BYTES	  832

/* Offset of the outermost _PyCFrame of 3.11 and 3.12 in it. */
#define ROOT_CFRAME_OFFSET 168

/* Size of the part that is searched for the counter of code versions. */
#define INTERP_BYTES 32768

const uint32_t fake_stack_minors[NR_FAKE_STACK_MINORS] = {
	11,
	12,
	13,
	14,
	15,
	FAKE_MAIN,
	FAKE_FREE_THREADED + 13,
	FAKE_FREE_THREADED + 14,
	FAKE_FREE_THREADED + 15,
	FAKE_FREE_THREADED + FAKE_MAIN,
};

static _Noreturn void misuse(const char *what)
{
	(void)fprintf(stderr, "fake_python: %s\n", what);
	abort();
}

static void set_u64(struct fake_python *py, remote_addr addr, uint32_t offset, uint64_t value)
{
	if (offset != OFFSET_ABSENT)
		fake_memory_write_u64(&py->fake, addr + offset, value);
}

static void set_u32(struct fake_python *py, remote_addr addr, uint32_t offset, uint32_t value)
{
	if (offset != OFFSET_ABSENT)
		fake_memory_write_u32(&py->fake, addr + offset, value);
}

remote_addr fake_python_alloc(struct fake_python *py, size_t size_bytes)
{
	remote_addr addr = py->free_addr;

	(void)fake_memory_map(&py->fake, addr, size_bytes);
	/* Leave a gap between objects so that no read covers two of them. */
	py->free_addr += (size_bytes + 63) / 16 * 16;
	return addr;
}

/* Make PyCode_Type, types whose instances are no code objects, and None. */
static void make_types(struct fake_python *py)
{
	const struct py_offsets *offsets = &py->build.offsets;
	static const char *const names[] = {"code", "NoneType", "str", "bytes"};
	remote_addr types[4];

	for (size_t i = 0; i < 4; i++) {
		remote_addr name_addr = fake_python_alloc(py, strlen(names[i]) + 1);

		fake_memory_write(&py->fake, name_addr, names[i], strlen(names[i]) + 1);
		types[i] = fake_python_alloc(py, 400);
		set_u64(py, types[i], offsets->object.tp_name, name_addr);
	}
	py->code_type_addr = types[0];
	py->str_type_addr = types[2];
	py->bytes_type_addr = types[3];
	py->none_addr = fake_python_alloc(py, 512);
	set_u64(py, py->none_addr, offsets->object.ob_type, types[1]);
}

static void write_counters(struct fake_python *py)
{
	const struct py_offsets *offsets = &py->build.offsets;

	set_u32(py, py->interp_addr, offsets->interpreter.next_code_version, py->next_version);
	set_u64(py, py->interp_addr, offsets->interpreter.code_object_generation, py->generation);
}

/* Place func_state of main, which is found by dtoa.preallocated_next before it. */
static void place_func_state(struct fake_python *py)
{
	const remote_addr addr = py->interp_addr + (py->build.free_threaded ? 19992 : 14256);

	fake_memory_write_u64(&py->fake, addr, addr - 1600);
	fake_memory_write_u32(&py->fake, addr + (py->build.free_threaded ? 12 : 8),
			      py->next_version);
	build_find_code_version(&py->fake.memory, py->runtime_addr, &py->build);
}

void fake_python_init(struct fake_python *py, uint32_t minor)
{
	uint8_t image[1024];
	size_t image_bytes = 0;

	*py = (struct fake_python){
		.minor = minor,
		.runtime_addr = RUNTIME_ADDR,
		.interp_addr = INTERP_ADDR,
		.free_addr = OBJECTS_ADDR,
		.stack_addr = FAKE_THREAD_ID,
		.next_version = 100,
		.generation = 7,
	};
	fake_memory_init(&py->fake);
	if (minor >= 13)
		image_bytes = fake_debug_offsets(minor, image, sizeof(image));
	(void)fake_memory_map(&py->fake, py->runtime_addr, 4096);
	fake_memory_write(&py->fake, py->runtime_addr, image, image_bytes);
	if (build_load(&py->fake.memory, py->runtime_addr, fake_version_hex(minor), &py->build,
		       NULL))
		misuse("build_load() refuses the image");
	(void)fake_memory_map(&py->fake, py->interp_addr, INTERP_BYTES);
	set_u64(py, py->runtime_addr, py->build.offsets.runtime.interpreters_head, py->interp_addr);
	if (py->build.newer_than_tested)
		place_func_state(py);
	make_types(py);
	write_counters(py);
}

void fake_python_done(struct fake_python *py)
{
	if (!py)
		return;
	fake_memory_done(&py->fake);
}

remote_addr fake_python_str(struct fake_python *py, const char *ascii)
{
	const struct py_offsets *offsets = &py->build.offsets;
	size_t length = strlen(ascii);
	remote_addr addr = fake_python_alloc(py, offsets->unicode.ascii_data + length + 1);

	set_u64(py, addr, offsets->object.ob_type, py->str_type_addr);
	set_u64(py, addr, offsets->unicode.length, length);
	/* kind 1, compact, ascii */
	set_u32(py, addr, offsets->unicode.state,
		(1u | 1u << 3 | 1u << 4) << offsets->unicode.state_kind_shift);
	fake_memory_write(&py->fake, addr + offsets->unicode.ascii_data, ascii, length + 1);
	return addr;
}

remote_addr fake_python_bytes(struct fake_python *py, const void *bytes, size_t size_bytes)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, offsets->bytes.ob_sval + size_bytes + 1);

	set_u64(py, addr, offsets->object.ob_type, py->bytes_type_addr);
	set_u64(py, addr, offsets->bytes.ob_size, size_bytes);
	fake_memory_write(&py->fake, addr + offsets->bytes.ob_sval, bytes, size_bytes);
	return addr;
}

static uint32_t nr_units(const struct fake_code *code)
{
	return code->nr_units ? code->nr_units : 8;
}

/*
 * A line table with one entry per unit ("no column" in 3.11): first_line, then one line further
 * each.
 */
static remote_addr make_linetable(struct fake_python *py, const struct fake_code *code)
{
	enum linetable_format format = py->build.traits.linetable_format;
	uint8_t table[512];
	uint32_t nr = nr_units(code);

	if (2 * nr > sizeof(table))
		misuse("too many units");
	for (uint32_t i = 0; i < nr; i++) {
		table[2 * i] = format == LINETABLE_LOCATIONS ? 0x80 | 13 << 3 : 2;
		table[2 * i + 1] = format == LINETABLE_LNOTAB ? 1 : i ? 1 : 0;
		if (format == LINETABLE_LOCATIONS)
			table[2 * i + 1] = (uint8_t)(table[2 * i + 1] << 1);
	}
	return fake_python_bytes(py, table, 2u * nr);
}

/* Make the bytecode as an object of its own, as before 3.11. */
static void make_bytecode(struct fake_python *py, remote_addr addr, const struct fake_code *code)
{
	static const uint8_t bytecode[512];

	set_u64(py, addr, py->build.offsets.code.bytecode,
		fake_python_bytes(py, bytecode, 2u * nr_units(code)));
}

size_t fake_python_code_bytes(const struct fake_python *py, const struct fake_code *code)
{
	return code_head_bytes(&py->build.offsets) +
	       (py->build.traits.frames_on_heap ? 0 : 2u * nr_units(code));
}

static void write_bytecode(struct fake_python *py, remote_addr start_addr,
			   const struct fake_code *code)
{
	for (uint32_t i = 0; i < nr_units(code); i++) {
		/* 9 is a valid opcode in every version. */
		fake_memory_write_u16(&py->fake, start_addr + 2 * i, 9);
	}
}

/* The array has the code's own bytecode, NULL, and the copy in which frames execute. */
void fake_python_move_bytecode(struct fake_python *py, remote_addr addr,
			       const struct fake_code *code)
{
	remote_addr array_addr = fake_python_alloc(py, 32);
	remote_addr copy_addr = fake_python_alloc(py, 2ull * nr_units(code));

	write_bytecode(py, copy_addr, code);
	set_u64(py, array_addr, 0, 3);
	set_u64(py, array_addr, 8, addr + py->build.offsets.code.code_adaptive);
	set_u64(py, array_addr, 24, copy_addr);
	set_u64(py, addr, py->build.tlbc.code_array, array_addr);
	py->tlbc_generation++;
	set_u32(py, py->interp_addr, py->build.tlbc.generation, py->tlbc_generation);
}

remote_addr fake_python_bytecode(struct fake_python *py, remote_addr addr)
{
	remote_addr array_addr, copy_addr;

	if (!py->build.tlbc.code_array ||
	    remote_memory_read_u64(&py->fake.memory, addr + py->build.tlbc.code_array,
				   &array_addr) ||
	    remote_memory_read_u64(&py->fake.memory, array_addr + 24, &copy_addr))
		return addr + py->build.offsets.code.code_adaptive;
	return copy_addr;
}

void fake_python_code_at(struct fake_python *py, remote_addr addr, const struct fake_code *code)
{
	const struct py_offsets *offsets = &py->build.offsets;
	uint32_t words = code->frame_words ? code->frame_words : 20;
	char path[64];

	(void)snprintf(path, sizeof(path), "/%s.py", code->name);
	set_u64(py, addr, offsets->object.ob_type, py->code_type_addr);
	set_u64(py, addr, offsets->code.ob_size, nr_units(code));
	set_u64(py, addr, offsets->code.filename, fake_python_str(py, path));
	set_u64(py, addr, offsets->code.qualname, fake_python_str(py, code->name));
	if (!py->build.traits.frames_on_heap) /* co_name */
		set_u64(py, addr, offsets->code.filename + 8, fake_python_str(py, code->name));
	set_u64(py, addr, offsets->code.linetable, make_linetable(py, code));
	set_u32(py, addr, offsets->code.firstlineno, code->first_line ? code->first_line : 1);
	set_u32(py, addr, offsets->code.framesize, words);
	set_u32(py, addr, offsets->code.nlocalsplus, 1);
	set_u32(py, addr, offsets->code.stacksize, words - 1 - py->build.traits.extra_frame_words);
	set_u32(py, addr, offsets->code.version, py->next_version);
	set_u32(py, addr, offsets->code.firsttraceable, code->first_traceable);
	if (py->build.traits.frames_on_heap)
		make_bytecode(py, addr, code);
	else
		write_bytecode(py, addr + offsets->code.code_adaptive, code);
	if (py->build.tlbc.code_array)
		fake_python_move_bytecode(py, addr, code);
	py->next_version++;
	write_counters(py);
}

void fake_python_code_names(struct fake_python *py, remote_addr addr, remote_addr named_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const uint32_t size_offset = offsets->object.ob_type + 8;
	const uint32_t items_offset = size_offset + py->build.traits.tuple_items_after_type;
	const remote_addr tuple_addr = fake_python_alloc(py, items_offset + 8);
	uint64_t name_addr;

	if (remote_memory_read_u64(&py->fake.memory, named_addr + offsets->code.filename + 8,
				   &name_addr))
		return;
	set_u64(py, tuple_addr, size_offset, 1);
	set_u64(py, tuple_addr, items_offset, name_addr);
	set_u64(py, addr, offsets->code.ob_size + 16, tuple_addr);
}

remote_addr fake_python_code(struct fake_python *py, const struct fake_code *code)
{
	remote_addr addr = fake_python_alloc(py, fake_python_code_bytes(py, code));

	fake_python_code_at(py, addr, code);
	return addr;
}

void fake_python_code_free(struct fake_python *py, remote_addr addr)
{
	set_u64(py, addr, py->build.offsets.object.ob_type, 0);
	py->generation++;
	write_counters(py);
}

struct code_clock fake_python_clock(const struct fake_python *py, uint64_t tick)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const bool has_generation = offsets->interpreter.code_object_generation != OFFSET_ABSENT;
	const bool has_next_version = offsets->interpreter.next_code_version != OFFSET_ABSENT;

	return (struct code_clock){
		.interp_addr = py->interp_addr,
		.tick = tick,
		.generation = has_generation ? py->generation : 0,
		.next_version = has_next_version ? py->next_version : 0,
		.has_generation = has_generation,
		.has_next_version = has_next_version,
	};
}

void fake_python_set_threads(struct fake_python *py, remote_addr head_addr)
{
	set_u64(py, py->interp_addr, py->build.offsets.interpreter.threads_head, head_addr);
}

void fake_python_thread_at(struct fake_python *py, remote_addr addr, uint64_t tid,
			   remote_addr next_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;

	set_u64(py, addr, offsets->thread.next, next_addr);
	set_u64(py, addr, offsets->thread.interp, py->interp_addr);
	set_u64(py, addr, offsets->thread.native_thread_id, tid);
	set_u64(py, addr, offsets->thread.thread_id, FAKE_THREAD_ID + tid);
	set_u64(py, addr, offsets->thread.base_frame, addr + BASE_FRAME_OFFSET);
	fake_python_set_stack(py, addr, 0, 0, fake_python_base(py, addr));
}

remote_addr fake_python_thread(struct fake_python *py, uint64_t tid)
{
	uint32_t head = py->build.offsets.interpreter.threads_head;
	remote_addr addr = fake_python_alloc(py, THREAD_BYTES);
	remote_addr next_addr;

	if (remote_memory_read_u64(&py->fake.memory, py->interp_addr + head, &next_addr))
		misuse("no interpreter");
	fake_python_thread_at(py, addr, tid, next_addr);
	fake_python_set_threads(py, addr);
	return addr;
}

remote_addr fake_python_base(const struct fake_python *py, remote_addr thread_addr)
{
	return py->build.offsets.thread.base_frame == OFFSET_ABSENT
		       ? 0
		       : thread_addr + BASE_FRAME_OFFSET;
}

/*
 * Report whether C called the interpreter loop for this frame, or with it, and get its previous
 * pointer.
 */
static bool is_entry(struct fake_python *py, remote_addr frame_addr, remote_addr *ret_previous_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const bool has_entry_flag = offsets->frame.is_entry != OFFSET_ABSENT;
	remote_addr executable_addr;
	uint8_t byte;

	if (remote_memory_read_u64(&py->fake.memory, frame_addr + offsets->frame.executable,
				   &executable_addr) ||
	    remote_memory_read(
		    &py->fake.memory,
		    frame_addr + (has_entry_flag ? offsets->frame.is_entry : offsets->frame.owner),
		    &byte, sizeof(byte)) ||
	    remote_memory_read_u64(&py->fake.memory, frame_addr + offsets->frame.previous,
				   ret_previous_addr)) {
		*ret_previous_addr = 0;
		return false;
	}
	/* An extension's frame with that owner has an executable. */
	return has_entry_flag ? byte != 0
			      : byte >= py->build.traits.shim_owner &&
					(executable_addr & ~(remote_addr)3) == py->none_addr;
}

/*
 * Make the chain of a thread's _PyCFrames: the thread state's own and one for each loop entry.
 * Returns the innermost.
 */
static remote_addr make_cframes(struct fake_python *py, remote_addr thread_addr,
				remote_addr current_addr)
{
	enum { MOST_FRAMES = 4096 }; /* stops at a circular stack */
	const struct py_offsets *offsets = &py->build.offsets;
	const uint64_t nr_calls = py->fake.nr_calls;
	remote_addr addr = thread_addr + ROOT_CFRAME_OFFSET;
	remote_addr frame_addr = current_addr;

	for (int i = 0; frame_addr && i < MOST_FRAMES; i++) {
		if (!is_entry(py, frame_addr, &frame_addr))
			continue;
		remote_addr inner_addr = fake_python_alloc(py, 24);

		set_u64(py, inner_addr, offsets->cframe.previous, addr);
		addr = inner_addr;
	}
	py->fake.nr_calls = nr_calls;
	return addr;
}

void fake_python_set_stack(struct fake_python *py, remote_addr thread_addr, remote_addr chunk_addr,
			   remote_addr top_addr, remote_addr current_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr cframe_addr;

	set_u64(py, thread_addr, offsets->thread.datastack_chunk, chunk_addr);
	set_u64(py, thread_addr, offsets->thread.datastack_top, top_addr);
	set_u64(py, thread_addr, offsets->thread.current_frame, current_addr);
	if (offsets->thread.cframe == OFFSET_ABSENT)
		return;
	cframe_addr = make_cframes(py, thread_addr, current_addr);
	set_u64(py, thread_addr, offsets->thread.cframe, cframe_addr);
	set_u64(py, cframe_addr, offsets->cframe.current_frame, current_addr);
}

remote_addr fake_python_chunk(struct fake_python *py, remote_addr previous_addr,
			      uint64_t size_bytes)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, size_bytes);

	set_u64(py, addr, offsets->chunk.previous, previous_addr);
	set_u64(py, addr, offsets->chunk.size, size_bytes);
	return addr;
}

void fake_python_frame(struct fake_python *py, remote_addr addr, const struct fake_frame *frame)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr start_addr = fake_python_bytecode(py, frame->executable);

	set_u64(py, addr, offsets->frame.executable, frame->executable);
	set_u64(py, addr, offsets->frame.previous, frame->previous);
	set_u64(py, addr, offsets->frame.instr_ptr, start_addr + 2ull * frame->unit);
	set_u32(py, addr, offsets->frame.stacktop, (uint32_t)frame->stacktop);
	fake_memory_write_u8(&py->fake, addr + offsets->frame.owner, frame->owner);
	if (offsets->frame.is_entry != OFFSET_ABSENT)
		fake_memory_write_u8(&py->fake, addr + offsets->frame.is_entry, frame->is_entry);
}

void fake_python_frame_object(struct fake_python *py, remote_addr addr,
			      const struct fake_frame_object *frame)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const struct py_traits *traits = &py->build.traits;
	int32_t lasti = frame->unit < 0 ? -1 : frame->unit * 2 / traits->lasti_unit_bytes;

	set_u64(py, addr, offsets->frame.executable, frame->code);
	set_u64(py, addr, offsets->frame.previous, frame->back);
	set_u32(py, addr, offsets->frame.lasti, (uint32_t)lasti);
	fake_memory_write_u8(&py->fake, addr + offsets->frame.state,
			     frame->suspended ? (uint8_t)(traits->executing + 0xff)
					      : traits->executing);
}
