/* SPDX-License-Identifier: MIT */
/*
 * What the files that write values share: value.c for scalars, containers and the choice among
 * all, value_objects.c for what has a name or attributes, exception.c. Each writes what it is called
 * for as far as it can be read. The first error ends the part of the value that it is in: it is kept
 * in the text, and until value_write_part() has dealt with it nothing more is read or written.
 */
#pragma once

#include "sampler/cpython/objects/value.h"
#include "sampler/cpython/objects/value_types.h"

/* Containers in containers are written so deep: 100 characters hardly show more. */
enum { VALUE_MAX_DEPTH = 8 };

/* A value that is being written. */
struct value_writer {
	struct remote_memory *memory; /* borrowed, as all of this */
	const struct py_build *build;
	struct value_text *text;
	remote_addr open[VALUE_MAX_DEPTH]; /* the containers around what is written now */
	unsigned int depth;
	bool in_object; /* an object's attributes are written: of others in it, the type alone */
};

/*
 * Write the object at addr, also what of it is not readable. -ESRCH and -EPERM alone are still in the
 * text behind it. Once the memory refuses to give more (-E2BIG) the text is full.
 */
void value_write_part(struct value_writer *writer, remote_addr addr);

/* Write "<not readable at 0x…>". */
void value_write_unreadable(struct value_writer *writer, remote_addr addr);

/* Whether the part that is written has failed: before, or now by err, if that is not 0. */
static inline bool value_failed(struct value_writer *writer, int err)
{
	if (!writer->text->err)
		writer->text->err = err;
	return writer->text->err;
}

/* Read size bytes, or a word, at addr. If the part has failed, now or before, they are 0. */
void value_read(struct value_writer *writer, remote_addr addr, void *ret_bytes, size_t size);
uint64_t value_read_word(struct value_writer *writer, remote_addr addr);

/* Where the fields of an object lie that are counted from the end of its ob_type. */
static inline remote_addr value_fields_addr(const struct value_writer *writer, remote_addr addr)
{
	return addr + writer->build->offsets.object.ob_type + sizeof(remote_addr);
}

/* Whether there is an object at addr, and it is of that kind, or derived from it. */
bool value_has_kind(struct value_writer *writer, remote_addr addr, enum value_kind kind);

/* The name of a type, without its module: "object" where that cannot be read. */
void value_write_type_name(struct value_writer *writer, const struct value_type *type);

/* What is called by a name. */
void value_write_class(struct value_writer *writer, remote_addr addr);
void value_write_module(struct value_writer *writer, remote_addr addr);
void value_write_function(struct value_writer *writer, remote_addr addr);
void value_write_method(struct value_writer *writer, remote_addr addr);
void value_write_builtin(struct value_writer *writer, remote_addr addr);

/* The attributes of an instance, a space before each; none if it has none. */
void value_write_attributes(struct value_writer *writer, remote_addr addr,
			    const struct value_type *type);
