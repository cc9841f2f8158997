/* SPDX-License-Identifier: MIT */
/*
 * Objects of the target: of what kind they are, and what those hold that hold no others. Text and
 * bytes out of str and bytes objects: every width, always bounded, always valid UTF-8 in the end;
 * C strings as they are; ints, as a number of ours and as text, however long they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/value_text.h"

/*
 * A longer str is cut after so many code points and ends in "…". Qualified names
 * and paths (PATH_MAX is 4096 bytes) are shorter.
 */
#define STRING_MAX_CHARS 4096

/*
 * The str object at addr as UTF-8, allocated and terminated (free() it). A
 * surrogate, as surrogateescape leaves in a file name, becomes "\udcXX" (each half
 * of a pair its own: to str they are two characters); a NUL becomes "\x00"; what is
 * no code point becomes U+FFFD; other control characters stay, for the writers to
 * escape. Never more than 6 bytes a character.
 *
 * 0; -EBADMSG (not a str by its state word, or a length that cannot be), -EFAULT,
 * -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Include/cpython/unicodeobject.h at 3.11, 3.13, 3.15.
 */
int string_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		char **ret_text);

/* The characters of a str object, still in the target. */
struct remote_text {
	remote_addr addr;
	uint64_t nr_chars;
	size_t char_bytes; /* 1, 2 or 4 */
};

/*
 * Find the characters of the str object at addr. 0; the errors of string_read(), but -ENOMEM.
 * That they end before the end of the address space is sure, and no more.
 */
int string_find(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		struct remote_text *ret_text);

/*
 * Read nr characters of text from the first on, which it has, as numbers: code points, but for
 * a damaged str. 0; -EFAULT, -ESRCH, -EPERM.
 */
enum { STRING_PIECE_CHARS = 256 };
int string_chars(struct remote_memory *memory, const struct remote_text *text, uint64_t first,
		 size_t nr, uint32_t ret_chars[STRING_PIECE_CHARS]);

/*
 * How many of size_bytes bytes that were read of a str object, from its length on, are
 * its own: what is behind its last character belongs to others.
 */
size_t string_own_bytes(const struct py_offsets *offsets, const uint8_t *bytes, size_t size_bytes);

/* Where in them its characters begin. */
uint32_t string_content_offset(const struct py_offsets *offsets, const uint8_t *bytes,
			       size_t size_bytes);

/*
 * The contents of the bytes object at addr, allocated (free() it). -E2BIG if
 * longer than max_bytes; else the errors of string_read().
 */
int bytes_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	       size_t max_bytes, uint8_t **ret_data, size_t *ret_size_bytes);

/*
 * How many bytes of a str object of nr_chars ASCII characters have to be read, from its
 * length on, for string_is(); and whether such bytes are of the str text, which is ASCII.
 */
size_t string_head_bytes(const struct py_offsets *offsets, size_t nr_chars);
bool string_is(const struct py_offsets *offsets, const uint8_t *bytes, const char *text);

/* C strings: the names of static types, and of what is written in C. */

/* Room for no string is larger: one lies in two pages at most. */
#define C_STRING_MAX_BYTES 4096

/*
 * Read the C string at addr into size bytes, 2 to C_STRING_MAX_BYTES, and terminate it: of one
 * that has no end in size - 1 bytes those alone. It may be the last thing in a mapping. 0; -EFAULT
 * (it is not there, or not up to its end), -ESRCH, -EPERM.
 */
int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size);

/* The same of the name of the type at type_addr: "module.name", or "name" of a builtin one. */
int type_name_read(struct remote_memory *memory, const struct py_offsets *offsets,
		   remote_addr type_addr, char *ret_text, size_t size);

/* Ints. */

/*
 * So many digits, of 30 bits each, are converted to decimal, which takes a step for each two of
 * them: 4300 decimal digits, as many as CPython itself prints (sys.int_info). Longer ints are
 * written in hexadecimal.
 */
#define INTEGER_MAX_DECIMAL_DIGITS 477

/*
 * The int object at addr, if it lies in 0 … 2^63 - 1. 0; -EBADMSG (this is no int, or
 * not such a one), -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Include/cpython/longintrepr.h.
 */
int integer_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		 uint64_t *ret_value);

/*
 * Add the int object at addr to text: exactly, or as much of it as there is room for. What is
 * longer than that is not read. 0; the errors of integer_read(), and then nothing may have
 * been added or some of it.
 */
int integer_write(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		  struct value_text *text);

/* Types. */

/*
 * What kind of value an object is, told by its type: by the name of a static type, which no
 * Python code can make; for what is derived from one, by its flags, or by following tp_base.
 * Where names cannot be read, the flags still tell most kinds. VALUE_NONE, VALUE_INT, …:
 * value_kinds.def says what they are.
 */
enum value_kind {
#define KIND(kind, flag, form) VALUE_##kind,
#include "sampler/cpython/objects/value_kinds.def"
	NR_VALUE_KINDS,
};

/* A type, and what its instances are. */
struct value_type {
	remote_addr addr;
	enum value_kind kind;
	bool is_exact; /* they are of that kind itself, and not of a subclass */
	bool is_heap;  /* TYPE_HEAP */
	bool is_ready; /* TYPE_READY, so far as flags are known */
	bool has_name; /* false: of a static type that could not be read */
};

/*
 * The type of the object at addr, by its name alone where nothing is known of flags. 0; -EBADMSG or -EFAULT (there is no type, no
 * object), -ESRCH, -EPERM.
 *
 * Source: best_base() of CPython Objects/typeobject.c: an instance is laid out as tp_base has
 * it; Objects/genobject.c (PyCoroWrapper, PyAsyncGenASend, PyAsyncGenAThrow) and
 * Objects/iterobject.c (anextawaitableobject) of 3.14 and 3.15.
 */
int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type);

/* What is known of the types of objects, for those who meet many of few types. All zero it is empty. */
enum { NR_CACHED_TYPES = 64 };
struct type_cache {
	struct value_type types[NR_CACHED_TYPES];
};

/* The type at addr itself, from the cache if it is known. Errors of value_type_of(). */
int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type);

/* Whether values can be read at all: not of a build of which too little is known. */
bool value_types_are_known(const struct py_offsets *offsets);
