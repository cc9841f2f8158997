/* SPDX-License-Identifier: MIT */
/*
 * What tells a code object from others that come to lie in its place, and from what is left of it once
 * it was freed: a hash (FNV-1a, of words) of where its texts are, its first line, and the beginnings of its
 * name, its path and its location table. The BPF program makes it in the interrupt, and its user of the
 * object that is found later. A version alone would not do: it is still there in an object that was
 * freed, when its texts are other ones by now.
 */
#pragma once

#include <linux/types.h>

/*
 * So much of a str or bytes object is looked at, from its length on. Its second word is its hash,
 * which may be computed at any time.
 */
#define IDENTITY_TEXT_WORDS 16
#define IDENTITY_TEXT_BYTES (8ull * IDENTITY_TEXT_WORDS)

/* From there on: where a bytes object has its bytes, and the word that has the kind of a str. */
#define IDENTITY_BYTES_OFFSET 16u
#define IDENTITY_STATE_WORD   2

/* The same of a str, which depends on the version. */
struct identity_str {
	__u32 ascii_offset; /* where the characters of ASCII begin */
	__u32 kind_shift;   /* of the state: three bits of kind, compact, ascii */
};

#define IDENTITY_INLINE static inline __attribute__((always_inline))

IDENTITY_INLINE __u64 identity_mix(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x100000001b3ull;
}

IDENTITY_INLINE __u64 identity_of_numbers(__u64 filename_addr, __u64 qualname_addr,
					  __u64 linetable_addr, __u32 first_line)
{
	__u64 hash = 0xcbf29ce484222325ull;

	hash = identity_mix(hash, filename_addr);
	hash = identity_mix(hash, qualname_addr);
	hash = identity_mix(hash, linetable_addr);
	return identity_mix(hash, first_line);
}

/*
 * Add an object of which those are the first words. What is not its own, behind its end, is 0; of the
 * words before its contents, which begin at content_offset, the length alone counts.
 */
IDENTITY_INLINE __u64 identity_add(__u64 hash, const __u64 words[IDENTITY_TEXT_WORDS],
				   __u32 content_offset)
{
	hash = identity_mix(hash, words[0]);
	for (__u32 i = 1; i < IDENTITY_TEXT_WORDS; i++)
		hash = 8 * i < content_offset ? hash : identity_mix(hash, words[i]);
	return hash;
}

/* How many of the first bytes are an object's own whose contents take so many. */
IDENTITY_INLINE __u64 identity_own_bytes(__u32 content_offset, __u64 content_bytes)
{
	return content_bytes < IDENTITY_TEXT_BYTES - content_offset ? content_offset + content_bytes
								    : IDENTITY_TEXT_BYTES;
}

/* The same of a str. Of one that is not ASCII the length alone counts. */
IDENTITY_INLINE __u64 identity_str_bytes(const struct identity_str *str,
					 const __u64 words[IDENTITY_STATE_WORD + 1])
{
	const __u64 compact_ascii = 3ull << (str->kind_shift + 3);

	if ((words[IDENTITY_STATE_WORD] & compact_ascii) != compact_ascii)
		return sizeof(__u64);
	return identity_own_bytes(str->ascii_offset, words[0]);
}
