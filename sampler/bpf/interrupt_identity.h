/* SPDX-License-Identifier: MIT */
/*
 * A hash that distinguishes a code object from earlier and later ones at its address: FNV-1a over
 * words, with the upper bits mixed into the lower ones. The BPF program computes it in the
 * interrupt; it has a file of its own so that it can be tested.
 */
#pragma once

#include <linux/types.h>

/* Number of words of a str or bytes object that are hashed, from its length on. */
#define IDENTITY_TEXT_WORDS 16

#define IDENTITY_INLINE static inline __attribute__((always_inline))

IDENTITY_INLINE __u64 identity_begin(void)
{
	return 0xcbf29ce484222325ull;
}

IDENTITY_INLINE __u64 identity_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x100000001b3ull;
	return hash ^ hash >> 32;
}

/*
 * Hash an object that starts with words and has own_bytes bytes of its own. Its contents begin at
 * content_offset, a multiple of 8. Of the words before the contents only the length is hashed:
 * the others, such as the hash and the UTF-8 form, may change during its lifetime.
 */
IDENTITY_INLINE __u64 identity_mix_text(__u64 hash, const __u64 words[IDENTITY_TEXT_WORDS],
					__u64 own_bytes, __u32 content_offset)
{
	__u64 nr_whole = own_bytes / sizeof(__u64);

	hash = identity_mix(hash, words[0]);
	for (__u32 i = 1; i < IDENTITY_TEXT_WORDS && i < nr_whole; i++)
		if (sizeof(__u64) * i >= content_offset)
			hash = identity_mix(hash, words[i]);
	__asm__ volatile("" : "+r"(nr_whole)); /* the verifier does not derive it from own_bytes */
	if (nr_whole >= IDENTITY_TEXT_WORDS || sizeof(__u64) * nr_whole < content_offset)
		return hash;
	return identity_mix(hash,
			    words[nr_whole] & ((1ull << 8 * (own_bytes % sizeof(__u64))) - 1));
}
