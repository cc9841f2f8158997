/* SPDX-License-Identifier: MIT */
/*
 * The hash that tells a code object from those that lie in its place before and after it: FNV-1a, of
 * words, with the upper bits mixed into the lower ones. The BPF program makes it in the interrupt; it
 * stands here so that it can be tested.
 */
#pragma once

#include <linux/types.h>

/* So much of a str or bytes object is hashed, from its length on. */
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
 * Add an object of which those are the first words, own_bytes of them its own. Its contents begin at
 * content_offset, a multiple of 8; of the words before, which may change while it lives (the hash, the
 * UTF-8 form), the length alone counts.
 */
IDENTITY_INLINE __u64 identity_mix_text(__u64 hash, const __u64 words[IDENTITY_TEXT_WORDS],
					__u64 own_bytes, __u32 content_offset)
{
	__u64 nr_whole = own_bytes / sizeof(__u64);

	hash = identity_mix(hash, words[0]);
	for (__u32 i = 1; i < IDENTITY_TEXT_WORDS && i < nr_whole; i++)
		if (sizeof(__u64) * i >= content_offset)
			hash = identity_mix(hash, words[i]);
	__asm__ volatile("" : "+r"(nr_whole)); /* the verifier does not know it by own_bytes */
	if (nr_whole >= IDENTITY_TEXT_WORDS || sizeof(__u64) * nr_whole < content_offset)
		return hash;
	return identity_mix(hash,
			    words[nr_whole] & ((1ull << 8 * (own_bytes % sizeof(__u64))) - 1));
}
