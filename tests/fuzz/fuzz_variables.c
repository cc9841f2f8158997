/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the variables of a frame. The first byte chooses the version. The rest is patches
 * to a code object with its names, a frame and objects of every kind: eight bytes each, at a
 * place that the input gives, used as they are or turned into an address in that memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/bounded_memory.h"
#include "sampler/cpython/frames/variables.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/objects/value.h"
#include "tests/support/fake_objects.h"

enum { PATCH_BYTES = 11, MAX_CHARS = 60, MAX_READS = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Apply the patches: two bytes of place, one of kind, eight of contents. */
static void apply(struct fake_python *py, remote_addr start_addr, const uint8_t *data, size_t size)
{
	const uint64_t span = py->free_addr - start_addr;

	for (; size >= PATCH_BYTES; data += PATCH_BYTES, size -= PATCH_BYTES) {
		const remote_addr addr = start_addr + field_u16(data, 0) * 8u % span;
		uint64_t contents = field_u64(data, 3);
		uint64_t word;

		if (data[2] & 1)
			contents = start_addr + contents * 8 % span;
		if (remote_memory_read_u64(&py->fake.memory, addr, &word) == 0)
			fake_memory_write_u64(&py->fake, addr, contents);
	}
}

/* An object of a static type whose words are the number of items and a pointer to them, twice. */
static remote_addr make_list(struct fake_python *py, const char *type_name,
			     const remote_addr *items, size_t nr_items)
{
	const remote_addr items_addr = fake_python_alloc(py, nr_items * sizeof(*items));
	const uint64_t words[] = {nr_items, items_addr, nr_items, items_addr};

	fake_memory_write(&py->fake, items_addr, items, nr_items * sizeof(*items));
	return fake_object(py, type_name, words, sizeof(words) / sizeof(*words));
}

/* A set with one object. set and frozenset have the same layout. */
static remote_addr make_set(struct fake_python *py, const char *type_name, remote_addr item)
{
	enum { NR_SLOTS = 8 };
	const uint64_t entry[] = {item, 17};
	const remote_addr table_addr = fake_python_alloc(py, NR_SLOTS * sizeof(entry));
	const uint64_t words[] = {1, 1, NR_SLOTS - 1, table_addr};

	fake_memory_write(&py->fake, table_addr + 2 * sizeof(entry), entry, sizeof(entry));
	return fake_object(py, type_name, words, sizeof(words) / sizeof(*words));
}

/* A dict whose head gives its type and length. */
static remote_addr make_dict(struct fake_python *py, const struct fake_item *items, size_t nr_items)
{
	const uint32_t type_offset = py->build.offsets.object.ob_type;
	const remote_addr addr = fake_dict(py, items, nr_items).addr;
	const remote_addr other_addr = fake_object(py, "dict", NULL, 0);
	uint64_t type_addr;

	if (remote_memory_read_u64(&py->fake.memory, other_addr + type_offset, &type_addr) != 0)
		abort();
	fake_memory_write_u64(&py->fake, addr + type_offset, type_addr);
	fake_memory_write_u64(&py->fake, addr + type_offset + 8, nr_items);
	return addr;
}

enum { NR_OBJECTS = 16 };

/* Make an object of each kind. The last ones contain the earlier ones. */
static void make_objects(struct fake_python *py, remote_addr objects[NR_OBJECTS])
{
	static const struct fake_item attributes[] = {{"first", 0, 0}, {"second", 0, 0}};
	static const uint64_t words[8] = {3 << 3, 2, 1, 0};
	struct fake_item items[2];
	size_t nr = 0;

	objects[nr++] = fake_object(py, "NoneType", words, 1);
	objects[nr++] = fake_object(py, "float", words, 1);
	objects[nr++] = fake_object(py, "complex", words, 2);
	objects[nr++] = fake_object(py, "bool", words, 2);
	objects[nr++] = fake_object(py, "int", words, 8);
	objects[nr++] = fake_object(py, "bytes", words, 8);
	objects[nr++] = fake_python_str(py, "text");
	objects[nr++] = fake_object(py, "tuple", words, 8);
	objects[nr++] = fake_object(py, "method", words, 4);
	objects[nr++] = fake_object(py, "function", words, 8);
	memcpy(items, attributes, sizeof(items));
	items[0].value_addr = objects[1];
	items[1].value_addr = objects[6];
	objects[nr++] = make_dict(py, items, 2);
	objects[nr++] = fake_instance(py, FAKE_NO_DICT, items, 2, NULL);
	objects[nr++] = fake_instance(py, FAKE_SPLIT_DICT, items, 2, NULL);
	objects[nr++] = make_set(py, "set", objects[6]);
	objects[nr] = make_list(py, "list", objects, nr);
	nr++;
	objects[nr] = make_list(py, "bytearray", objects, nr);
}

static void check_text(const struct value_text *text)
{
	if (text->nr_chars > text->max_chars || text->length > 4 * text->max_chars ||
	    text->bytes[text->length] != '\0' || strlen(text->bytes) != text->length)
		abort();
}

static void write_value(struct fake_python *py, remote_addr addr)
{
	char room[4 * MAX_CHARS + 1];
	struct bounded_memory bounded;
	struct value_text text;

	value_text_init(&text, room, MAX_CHARS);
	bounded_memory_init(&bounded, &py->fake.memory, MAX_READS, NULL, UINT64_MAX);
	if (value_write(&bounded.memory, &py->build, addr, &text) != 0)
		abort();
	check_text(&text);
}

/* A tuple of two names. */
static remote_addr make_names(struct fake_python *py)
{
	const uint64_t names[] = {fake_python_str(py, "one"), fake_python_str(py, "two")};
	uint64_t words[4] = {2};

	memcpy(&words[py->build.traits.tuple_items_after_type / sizeof(*words)], names,
	       sizeof(names));
	return fake_object(py, "tuple", words, 4);
}

/* Give the code object at addr two variables, the second one a cell. */
static void name_variables(struct fake_python *py, remote_addr addr)
{
	static const uint8_t kinds[] = {0x20, 0x40};
	const struct py_offsets *offsets = &py->build.offsets;
	const remote_addr names_addr = make_names(py);

	fake_memory_write_u64(&py->fake, addr + offsets->code.names, names_addr);
	if (offsets->code.kinds != OFFSET_ABSENT) {
		fake_memory_write_u64(&py->fake, addr + offsets->code.kinds,
				      fake_python_bytes(py, kinds, sizeof(kinds)));
		return;
	}
	fake_memory_write_u64(&py->fake, addr + offsets->code.cellvars, names_addr);
	fake_memory_write_u64(&py->fake, addr + offsets->code.freevars, names_addr);
}

static void read_variables(struct fake_python *py, remote_addr code_addr, remote_addr frame_addr)
{
	struct variable_slots slots = {0};
	struct bounded_memory bounded;

	bounded_memory_init(&bounded, &py->fake.memory, MAX_READS, NULL, UINT64_MAX);
	if (variables_read(&bounded.memory, &py->build, code_addr, frame_addr, &slots) != 0)
		return;
	for (uint32_t i = 0; i < slots.nr_slots && i < NR_OBJECTS; i++) {
		char room[4 * MAX_CHARS + 1];
		struct value_text text;

		value_text_init(&text, room, MAX_CHARS);
		(void)value_write_name(&bounded.memory, &py->build, slots.slots[i].name_addr,
				       &text);
		check_text(&text);
		write_value(py, slots.slots[i].value_addr);
	}
	free(slots.slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_python py;
	remote_addr objects[NR_OBJECTS];
	remote_addr start_addr, code_addr, frame_addr, words_addr;

	if (size < 1 + PATCH_BYTES)
		return 0;
	fake_python_init(&py, fake_minors[data[0] % NR_FAKE_MINORS]);
	start_addr = py.free_addr;
	code_addr = fake_python_code(&py, &(struct fake_code){.name = "f"});
	name_variables(&py, code_addr);
	frame_addr = fake_python_alloc(&py, 1024);
	make_objects(&py, objects);
	words_addr =
		frame_addr + (py.build.traits.frames_on_heap ? py.build.offsets.frame.heap_locals
							     : py.build.offsets.frame.localsplus);
	fake_memory_write(&py.fake, words_addr, objects, sizeof(objects));
	apply(&py, start_addr, data + 1, size - 1);
	read_variables(&py, code_addr, frame_addr);
	for (size_t i = 0; i < NR_OBJECTS; i++)
		write_value(&py, objects[i]);
	fake_python_done(&py);
	return 0;
}
