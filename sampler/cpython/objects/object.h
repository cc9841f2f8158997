/* SPDX-License-Identifier: MIT */
/*
 * Reads objects of the target: their kind, and the contents of those that hold no other objects.
 * Text and bytes come from str and bytes objects of every width; lengths are always bounded, and
 * the result is always valid UTF-8. C strings are read as they are; ints of any size, as a number
 * or as text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/value_text.h"

/*
 * A longer str is cut to this many code points and ends in "…". Qualified names and paths (PATH_MAX
 * is 4096 bytes) are shorter.
 */
#define STRING_MAX_CHARS 4096

/*
 * Read the str object at addr as UTF-8, allocated and terminated (free() it). A surrogate, as
 * surrogateescape leaves in a file name, becomes "\udcXX" (both halves of a pair separately: a str
 * has them as two characters); a NUL becomes "\x00"; a number that is no code point becomes U+FFFD;
 * other control characters stay, for the writers to escape. A character takes at most 6 bytes.
 *
 * Returns 0; -EBADMSG (its state word is not a str's, or the length is impossible); -EFAULT,
 * -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Include/cpython/unicodeobject.h at 3.11, 3.13, 3.15.
 */
int string_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		char **ret_text);

/* The characters of a str object, in the target. */
struct remote_text {
	remote_addr addr;
	uint64_t nr_chars;
	size_t char_bytes; /* 1, 2 or 4 */
};

/*
 * Find the characters of the str object at addr. It is only checked that they end before the end of
 * the address space. Returns 0, or an error of string_read() except -ENOMEM.
 */
int string_find(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		struct remote_text *ret_text);

/* A buffer for names and short values. */
enum { STRING_PIECE_CHARS = 256 };

/*
 * Read nr characters of text as numbers, from first on; text must have them, and nr is at most
 * STRING_PIECE_CHARS. They are code points unless the str is damaged. Returns 0, -EFAULT, -ESRCH
 * or -EPERM.
 */
int string_chars(struct remote_memory *memory, const struct remote_text *text, uint64_t first,
		 size_t nr, uint32_t ret_chars[STRING_PIECE_CHARS]);

/*
 * How many of the size_bytes bytes that were read of a str object, from its length on, are its own.
 * Bytes after its last character belong to other objects.
 */
size_t string_valid_bytes(const struct py_offsets *offsets, const uint8_t *bytes,
			  size_t size_bytes);

/* The offset of its characters in those bytes. */
uint32_t string_content_offset(const struct py_offsets *offsets, const uint8_t *bytes,
			       size_t size_bytes);

/*
 * Read the contents of the bytes object at addr, allocated (free() it). Returns -E2BIG if it is
 * longer than max_bytes; else like string_read().
 */
int bytes_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	       size_t max_bytes, uint8_t **ret_data, size_t *ret_size_bytes);

/*
 * How many bytes of a str object with nr_chars ASCII characters string_is() needs, from its length
 * on; and whether such bytes are those of a str equal to text, which is ASCII.
 */
size_t string_compare_bytes(const struct py_offsets *offsets, size_t nr_chars);
bool string_is(const struct py_offsets *offsets, const uint8_t *bytes, const char *text);

/* C strings: names of static types and of functions written in C. */

/* Limit on buffers for C strings, so that a string is in two pages at most. */
#define C_STRING_MAX_BYTES 4096

/*
 * Read the C string at addr into size bytes (2 to C_STRING_MAX_BYTES) and terminate it; a longer
 * one is cut to size - 1 bytes. It may be the last thing in a mapping. Returns 0; -EFAULT (it is
 * missing, or its end is); -ESRCH, -EPERM.
 */
int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size);

/* The same for the name of the type at type_addr: "module.name", or "name" for a builtin type. */
int type_name_read(struct remote_memory *memory, const struct py_offsets *offsets,
		   remote_addr type_addr, char *ret_text, size_t size);

/* Ints. */

/*
 * Most digits, of 30 bits each, that are converted to decimal, in quadratic time. They give 4300
 * decimal digits, as many as CPython itself prints (sys.int_info). Longer ints are written in
 * hexadecimal.
 */
#define INTEGER_MAX_DECIMAL_DIGITS 477

/*
 * Read the int object at addr if it is in 0 … 2^63 - 1. Returns 0; -EBADMSG (it is no int, or out
 * of this range); -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Include/cpython/longintrepr.h.
 */
int integer_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		 uint64_t *ret_value);

/*
 * Append the int object at addr to text, exactly, or as much as fits; the rest is not read. Returns
 * 0, or an error of integer_read(); then a part may have been appended.
 */
int integer_write(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		  struct value_text *text);

/* Types. */

/*
 * The kind of an object's value, determined by its type. A static type, which Python code cannot
 * create, is recognised by name; a derived type by its flags, or along tp_base. If names cannot be
 * read, the flags still give most kinds. VALUE_NONE, VALUE_INT, …: see value_kinds.def.
 */
enum value_kind {
#define KIND(kind, flag, form) VALUE_##kind,
#include "sampler/cpython/objects/value_kinds.def"
	NR_VALUE_KINDS,
};

/* A type, and the kind of its instances. */
struct value_type {
	remote_addr addr;
	enum value_kind kind;
	bool is_exact; /* they are of the kind itself, not of a subclass */
	bool is_heap;  /* TYPE_HEAP */
	bool is_ready; /* TYPE_READY, if flags are known */
	bool has_name; /* false: static, but the name could not be read */
};

/*
 * Read the type of the object at addr; by name alone if the build's flags are unknown. Returns 0;
 * -EBADMSG or -EFAULT (there is no type, or no object); -ESRCH, -EPERM.
 *
 * Source: best_base() of CPython Objects/typeobject.c: an instance has the layout of its tp_base;
 * Objects/genobject.c (PyCoroWrapper, PyAsyncGenASend, PyAsyncGenAThrow) and Objects/iterobject.c
 * (anextawaitableobject) of 3.14 and 3.15.
 */
int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type);

/* A cache of types, for callers that meet many objects of few types. Empty if all zero. */
enum { NR_CACHED_TYPES = 64 };
struct type_cache {
	struct value_type types[NR_CACHED_TYPES];
};

/* Read the type at addr itself, or take it from the cache. Errors of value_type_of(). */
int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type);

/* Whether values can be read in this build; false if too few offsets are known. */
bool value_types_are_known(const struct py_offsets *offsets);
