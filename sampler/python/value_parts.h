/* SPDX-License-Identifier: MIT */
/*
 * What the files that write values share: value.c for scalars, containers and the choice among
 * all, value_objects.c for what has a name or attributes, exception.c. Each writes what it is called for as far as it can be
 * read; 0, or an error of the reading, where the caller says that there was more.
 */
#pragma once

#include "sampler/python/value.h"
#include "sampler/python/value_types.h"

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
 * Write the object at addr, also what of it is not readable. 0; -ESRCH, -EPERM. Once the
 * memory refuses to give more (-E2BIG) the text is full.
 */
int value_write_part(struct value_writer *writer, remote_addr addr);

/* Write "<not readable at 0x…>". */
void value_write_unreadable(struct value_writer *writer, remote_addr addr);

/* size bytes, or one word, so many bytes behind the ob_type of the object at addr. */
int value_read_fields(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		      void *ret_fields, size_t size);
int value_read_field(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		     uint64_t *ret_value);

/* Whether there is an object at addr, and it is of that kind, or derived from it. */
bool value_has_kind(struct value_writer *writer, remote_addr addr, enum value_kind kind);

/* The name of a type, without its module: "object" where that cannot be read. */
int value_write_type_name(struct value_writer *writer, const struct value_type *type);

/* What is called by a name. */
int value_write_class(struct value_writer *writer, remote_addr addr);
int value_write_module(struct value_writer *writer, remote_addr addr);
int value_write_function(struct value_writer *writer, remote_addr addr);
int value_write_method(struct value_writer *writer, remote_addr addr);
int value_write_builtin(struct value_writer *writer, remote_addr addr);

/* The attributes of an instance, a space before each; none if it has none. */
int value_write_attributes(struct value_writer *writer, remote_addr addr,
			   const struct value_type *type);
