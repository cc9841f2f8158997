/* SPDX-License-Identifier: MIT */
/*
 * Runs in the interrupt that a thread of the target gets when it has used so much CPU time: on its
 * CPU, in its memory, while it can execute nothing. So what it reads is of one instant, whoever has
 * the GIL, if there is one.
 *
 * It follows `previous` as sampler/python/frames.h does, and judges nothing: the user walks over the
 * copies. Nothing here needs the kernel's types, and where things lie in the target is constant from
 * loading on.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "sampler/bpf/interrupt_record.h"

/* Some helpers are only for programs of a licence that is the kernel's, too. */
char program_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct interrupt_layout layout;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the user sets how many threads there may be */
	__type(key, __u32);
	__type(value, struct interrupt_thread);
} threads SEC(".maps");

/*
 * A walk under way. What changes with each frame is here and not on the stack of the program, so that
 * the kernel's verifier does not follow each value that it may have.
 */
struct scratch {
	__u64 addr, end_addr;
	__u8 bytes[INTERRUPT_RECORD_MAX_BYTES];
};

/* One for each possible processor: an interrupt is not interrupted by another one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct interrupt_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, INTERRUPT_RING_BYTES);
} records SEC(".maps");

static __always_inline __u64 word_at(const __u8 *bytes, __u32 offset)
{
	return *(const __u64 *)(bytes + offset);
}

struct walk {
	struct scratch *scratch;
	struct interrupt_record *record; /* in there */
};

/* Add to a hash what a str or bytes object says. What cannot be read says nothing. */
static __always_inline __u64 hash_object(__u64 hash, __u64 object_addr, bool is_str)
{
	const void *from = (void *)(object_addr + layout.code.text_length);
	const struct identity_str str = {layout.code.str.ascii_offset, layout.code.str.kind_shift};
	__u64 words[IDENTITY_TEXT_WORDS] = {0};
	__u64 nr_bytes;

	if (bpf_probe_read_user(words, sizeof(__u64[IDENTITY_STATE_WORD + 1]), from))
		return hash;
	nr_bytes = is_str ? identity_str_bytes(&str, words)
			  : identity_own_bytes(IDENTITY_BYTES_OFFSET, words[0]);
	__builtin_memset(words, 0, sizeof(words));
	/* The compiler knows how many they are at most; the verifier wants to see it. */
	asm volatile("" : "+r"(nr_bytes));
	if (nr_bytes > sizeof(words) || bpf_probe_read_user(words, nr_bytes, from))
		return hash;
	return identity_add(hash, words, is_str ? str.ascii_offset : IDENTITY_BYTES_OFFSET);
}

/* What tells a code object from others; 0 for what is none. */
static __always_inline __u64 identity_of(__u64 executable)
{
	const __u32 mask = INTERRUPT_CODE_MAX_BYTES - 1;
	__u8 code[INTERRUPT_CODE_MAX_BYTES] = {0};
	__u64 filename, qualname, linetable, hash;

	executable &= ~3ull; /* a tagged reference since 3.14 */
	if (!executable || bpf_probe_read_user(code, layout.code.size & mask,
					       (void *)(executable + layout.code.first)))
		return 0;
	filename = word_at(code, layout.code.filename & mask);
	qualname = word_at(code, layout.code.qualname & mask);
	linetable = word_at(code, layout.code.linetable & mask);
	hash = identity_of_numbers(filename, qualname, linetable,
				   *(const __u32 *)(code + (layout.code.first_line & mask)));
	hash = hash_object(hash, qualname, true);
	hash = hash_object(hash, filename, true);
	return hash_object(hash, linetable, false);
}

static long take_frame(__u32 index, struct walk *walk)
{
	const __u32 size = layout.frame.head_size & (INTERRUPT_FRAME_MAX_BYTES - 1);
	struct scratch *scratch = walk->scratch;
	struct interrupt_record *record = walk->record;
	const __u32 nr_bytes = record->nr_bytes;
	const __u64 addr = scratch->addr;
	struct interrupt_frame *frame;
	__u8 *bytes;

	if (!addr || addr == scratch->end_addr)
		return 1;
	if (nr_bytes > INTERRUPT_RECORD_MAX_BYTES - 2 * INTERRUPT_FRAME_MAX_BYTES) {
		record->end = INTERRUPT_TOO_DEEP;
		return 1;
	}
	frame = (void *)(scratch->bytes + nr_bytes);
	bytes = (__u8 *)(frame + 1);
	if (bpf_probe_read_user(bytes, size, (void *)addr)) {
		record->end = INTERRUPT_FAULT;
		return 1;
	}
	frame->addr = addr;
	frame->identity = identity_of(
		word_at(bytes, layout.frame.executable & (INTERRUPT_FRAME_MAX_BYTES - 1)));
	scratch->addr = word_at(bytes, layout.frame.previous & (INTERRUPT_FRAME_MAX_BYTES - 1));
	record->nr_bytes = nr_bytes + sizeof(*frame) + INTERRUPT_ROUND_UP(size);
	record->nr_frames = index + 1;
	return 0;
}

/* Count the loops of 3.10 to 3.12; the outermost _PyCFrame is the thread state's own. */
static long take_loop(__u32 index, struct walk *walk)
{
	struct scratch *scratch = walk->scratch;
	struct interrupt_record *record = walk->record;

	if (!scratch->addr || scratch->addr - record->state_addr < layout.state.size)
		return 1;
	record->nr_loops = index + 1;
	if (bpf_probe_read_user(&scratch->addr, sizeof(scratch->addr),
				(void *)(scratch->addr + layout.cframe.previous))) {
		record->end = INTERRUPT_FAULT;
		return 1;
	}
	return 0;
}

static __always_inline int take_words(struct interrupt_record *record,
				      const struct interrupt_state *told)
{
	const __u32 gil_bytes = told->gil_bytes;
	int err = 0;

	record->collector = 0;
	record->tlbc_generation = 0;
	if (told->gil_addr && gil_bytes <= INTERRUPT_GIL_MAX_BYTES)
		err = bpf_probe_read_user(record->gil, gil_bytes, (void *)told->gil_addr);
	if (!err && told->collector_addr)
		err = bpf_probe_read_user(&record->collector, sizeof(record->collector),
					  (void *)told->collector_addr);
	if (!err && told->tlbc_addr)
		err = bpf_probe_read_user(&record->tlbc_generation, sizeof(record->tlbc_generation),
					  (void *)told->tlbc_addr);
	return err;
}

/* Find the innermost frame and, of 3.10 to 3.12, count the loops. */
static __always_inline int take_ends(struct walk *walk, const __u8 *state)
{
	struct scratch *scratch = walk->scratch;
	struct interrupt_record *record = walk->record;

	scratch->end_addr = layout.state.base_frame == INTERRUPT_ABSENT
				    ? 0
				    : word_at(state, layout.state.base_frame & 511);
	if (layout.cframe.current_frame == INTERRUPT_ABSENT) {
		record->current_addr = word_at(state, layout.state.current_frame & 511);
		return 0;
	}
	scratch->addr = word_at(state, layout.state.cframe & 511);
	if (bpf_probe_read_user(&record->current_addr, sizeof(record->current_addr),
				(void *)(scratch->addr + layout.cframe.current_frame)))
		return -1;
	bpf_loop(INTERRUPT_MAX_STEPS, take_loop, walk, 0);
	return record->end == INTERRUPT_WHOLE ? 0 : -1;
}

/* Read a state and all its frames into the record. */
static __always_inline void take_state(struct scratch *scratch, const struct interrupt_state *told)
{
	const __u32 state_bytes = layout.state.head_size & (INTERRUPT_STATE_MAX_BYTES - 1);
	struct interrupt_record *record = (void *)scratch->bytes;
	__u8 *state = (__u8 *)(record + 1);
	struct walk walk = {scratch, record};

	record->state_addr = told->addr;
	record->slot = told->slot;
	record->nr_frames = 0;
	record->nr_loops = 0;
	record->end = INTERRUPT_WHOLE;
	record->nr_bytes = sizeof(*record) + INTERRUPT_ROUND_UP(state_bytes);
	if (take_words(record, told) ||
	    bpf_probe_read_user(state, state_bytes, (void *)told->addr) ||
	    take_ends(&walk, state)) {
		record->end = INTERRUPT_FAULT;
		return;
	}
	scratch->addr = record->current_addr;
	bpf_loop(INTERRUPT_MAX_STEPS, take_frame, &walk, 0);
	if (scratch->addr && scratch->addr != scratch->end_addr && record->end == INTERRUPT_WHOLE)
		record->end = INTERRUPT_TOO_DEEP;
}

SEC("perf_event")
int take_interrupt(void *context)
{
	const __u64 begin_ns = bpf_ktime_get_ns();
	const __u32 cpu = bpf_get_smp_processor_id();
	struct bpf_pidns_info ids = {0};
	struct interrupt_counts *count;
	struct interrupt_thread *thread;
	struct interrupt_record *record;
	struct scratch *scratch;
	__u32 zero = 0, nr_bytes;

	(void)context;
	count = bpf_map_lookup_elem(&counts, &zero);
	scratch = bpf_map_lookup_elem(&scratches, &cpu);
	if (!count || !scratch ||
	    bpf_get_ns_current_pid_tgid(layout.namespace_dev, layout.namespace_ino, &ids,
					sizeof(ids)) ||
	    ids.tgid != layout.process_id)
		return 0;
	count->nr_interrupts++;
	thread = bpf_map_lookup_elem(&threads, &ids.pid);
	if (!thread) {
		count->nr_unknown++;
		return 0;
	}
	if (begin_ns - thread->last_ns < layout.period_ns / 2) {
		count->nr_doubled++;
		return 0;
	}
	thread->last_ns = begin_ns;
	record = (void *)scratch->bytes;
	record->time_ns = begin_ns;
	for (__u32 i = 0; i < INTERRUPT_MAX_STATES && thread->states[i].addr; i++) {
		take_state(scratch, &thread->states[i]);
		nr_bytes = record->nr_bytes;
		if (nr_bytes > INTERRUPT_RECORD_MAX_BYTES ||
		    bpf_ringbuf_output(&records, record, nr_bytes, BPF_RB_NO_WAKEUP))
			count->nr_full++;
	}
	count->taken_ns += bpf_ktime_get_ns() - begin_ns;
	return 0;
}
