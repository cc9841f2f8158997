/* SPDX-License-Identifier: MIT */
/*
 * What tells a code object that has no version (to 3.11) from others that may come to lie in its
 * place: a hash (FNV-1a, of words) of where its texts are, its first line, the first characters of
 * its name and the first bytes of its location table. The BPF program makes it in the interrupt, and its
 * user of the object that is found later.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

/*
 * So much of a str or bytes object is looked at, from its length on. Its second word is its hash,
 * which may be computed at any time.
 */
#define IDENTITY_TEXT_WORDS 9

/* From there on, the word that has a str's kind, and where the characters of ASCII begin. */
#define IDENTITY_STATE_WORD  2
#define IDENTITY_ASCII_BYTES 32u
#define IDENTITY_BYTES_BYTES 16u /* where those of a bytes object begin */

/* PyASCIIObject.state: compact and ascii. */
#define IDENTITY_IS_ASCII (3u << 5)

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

/* Add the words of an object, of which those are 0 that are not its own. */
IDENTITY_INLINE __u64 identity_add_words(__u64 hash, const __u64 words[IDENTITY_TEXT_WORDS])
{
	hash = identity_mix(hash, words[0]);
	for (__u32 i = 2; i < IDENTITY_TEXT_WORDS; i++)
		hash = identity_mix(hash, words[i]);
	return hash;
}

/* How many bytes of a bytes object count, of which those are the first words. */
IDENTITY_INLINE __u64 identity_bytes_bytes(const __u64 words[1])
{
	return words[0] < sizeof(__u64[IDENTITY_TEXT_WORDS]) - IDENTITY_BYTES_BYTES
		       ? IDENTITY_BYTES_BYTES + words[0]
		       : sizeof(__u64[IDENTITY_TEXT_WORDS]);
}

/* The same of a str. Of one that is not ASCII the length alone counts. */
IDENTITY_INLINE __u64 identity_string_bytes(const __u64 words[IDENTITY_STATE_WORD + 1])
{
	if ((words[IDENTITY_STATE_WORD] & IDENTITY_IS_ASCII) != IDENTITY_IS_ASCII)
		return sizeof(__u64);
	return words[0] < sizeof(__u64[IDENTITY_TEXT_WORDS]) - IDENTITY_ASCII_BYTES
		       ? IDENTITY_ASCII_BYTES + words[0]
		       : sizeof(__u64[IDENTITY_TEXT_WORDS]);
}
