/* SPDX-License-Identifier: MIT */
/*
 * Shared by the functions that write one value, and private to their files: value.c writes data and
 * attributes, value_names.c classes, modules and functions, exception_text.c exceptions.
 *
 * Each function writes its part as far as it can be read. The first error ends the part that it
 * occurs in. The text holds the error, and until value_write_part() handles it nothing more is read
 * or written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/objects/value_text.h"

/* Limit on nesting of containers: 100 characters hardly show more. */
enum { VALUE_MAX_DEPTH = 8 };

/* The writing of one value. */
struct value_writer {
	struct remote_memory *memory; /* borrowed, like everything here */
	const struct py_build *build;
	const struct py_offsets *offsets; /* the build's */
	struct value_text *text;
	remote_addr open[VALUE_MAX_DEPTH]; /* the containers around the current part */
	unsigned int depth;
	bool in_object; /* inside an object's attributes: write only the type of other objects */
};

/* Whether the current part has failed, earlier or now with err (if not 0). */
static inline bool writer_failed(struct value_writer *writer, int err)
{
	if (!writer->text->err)
		writer->text->err = err;
	return writer->text->err;
}

/* The base of offsets that count from the end of an object's ob_type. */
static inline remote_addr writer_fields(const struct value_writer *writer, remote_addr addr)
{
	return addr + writer->offsets->object.ob_type + sizeof(remote_addr);
}

/* Read size bytes at addr. They are 0 if the part fails or has failed. */
static inline void writer_read(struct value_writer *writer, remote_addr addr, void *ret_bytes,
			       size_t size)
{
	if (writer_failed(writer, 0) ||
	    writer_failed(writer, remote_memory_read(writer->memory, addr, ret_bytes, size)))
		memset(ret_bytes, 0, size);
}

/* The same for a word. */
static inline uint64_t writer_word(struct value_writer *writer, remote_addr addr)
{
	uint64_t word;

	writer_read(writer, addr, &word, sizeof(word));
	return word;
}

/* Whether addr is the address of an object of that kind, or of a derived one. */
static inline bool writer_has_kind(struct value_writer *writer, remote_addr addr,
				   enum value_kind kind)
{
	struct value_type type;

	return addr && value_type_of(writer->memory, writer->build, addr, &type) == 0 &&
	       type.kind == kind;
}

/* Read a field of a heap type, at a distance before its cached keys. */
static inline remote_addr writer_heap_field(struct value_writer *writer, remote_addr type_addr,
					    uint32_t before)
{
	return writer_word(writer, type_addr + writer->offsets->type.cached_keys - before);
}

/*
 * Write the object at addr, marking what cannot be read. Afterwards the text has no error but
 * -ESRCH or -EPERM. When the memory's budget is used up (-E2BIG), the text is full.
 */
void value_write_part(struct value_writer *writer, remote_addr addr);

/* Write "<unreadable at 0x…>". */
void value_write_unreadable(struct value_writer *writer, remote_addr addr);

/* Write the characters of the str at addr as they are. */
void value_write_chars(struct value_writer *writer, remote_addr addr);

/* The same, but the part fails with -EBADMSG if the object is no str. */
void value_write_checked_chars(struct value_writer *writer, remote_addr addr);

/* Write the name of a type, without its module; "object" if it cannot be read. */
void value_write_type_name(struct value_writer *writer, const struct value_type *type);

/* Write the object at addr, of the kind that the function names, as repr() does. */
void value_write_class(struct value_writer *writer, remote_addr addr);
void value_write_module(struct value_writer *writer, remote_addr addr);
void value_write_function(struct value_writer *writer, remote_addr addr);
void value_write_method(struct value_writer *writer, remote_addr addr);
void value_write_builtin(struct value_writer *writer, remote_addr addr);
