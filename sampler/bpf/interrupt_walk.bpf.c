/* SPDX-License-Identifier: MIT */
/*
 * Runs in the interrupt that a thread of a target, or its CPU, gets after a period of time: on the
 * thread's CPU and in its memory, while it can execute nothing. So what it reads is of one
 * instant, whichever thread has the GIL, if there is a GIL.
 *
 * It follows `previous` like sampler/cpython/frames/frames.h and judges nothing: user space
 * walks the copies. It needs none of the kernel's types, and all offsets in the targets are
 * constants from loading on. It samples any number of processes that have these offsets.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include <stddef.h>

#include "sampler/bpf/interrupt_identity.h"
#include "sampler/bpf/interrupt_record.h"

/* Some helpers require a program with a licence compatible with the kernel's. */
char program_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct interrupt_layout layout;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space sets the real limit */
	__type(key, __u32);
	__type(value, struct interrupt_thread);
} threads SEC(".maps");

/* Where a code object is: forked processes have others at the same address. */
struct code_place {
	__u64 process_key;
	__u64 addr;
};

/*
 * A walk in progress. What changes with each frame is here and not on the program's stack, so
 * that the kernel's verifier does not track every possible value.
 */
struct scratch {
	__u64 addr, end_addr;
	__u64 code_type_addr; /* of the process */
	__u64 interpreter_id;
	__u64 executable, identity; /* of the frame before; 0: none */
	struct bpf_perf_event_value event;
	__u32 nr_new;		    /* number of code objects reported by this interrupt */
	struct code_place place;    /* of the code object being read */
	struct interrupt_code code; /* for its report */
	__u8 bytes[INTERRUPT_RECORD_MAX_BYTES];
};

/* One for each possible CPU: interrupts do not nest. */
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

/* The identity last reported for each place; user space removes what it has dropped. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, INTERRUPT_KNOWN_CODES);
	__type(key, struct code_place);
	__type(value, __u64);
} known_codes SEC(".maps");

/* Whether ticks are sampled. Set by user space. */
__u64 is_on = 0;

/*
 * Whether interrupts are of all CPUs and not of the threads of the processes. Set by user space.
 */
__u64 has_cpu_events = 0;

/* The processes that are sampled. Set by user space. */
struct interrupt_process processes[INTERRUPT_MAX_PROCESSES] = {0};

#define CODE_MASK (INTERRUPT_CODE_MAX_BYTES - 1)

enum { STATE_KIND = 7, STATE_COMPACT = 8, STATE_ASCII = 16 };
enum { TEXT_HEAD_WORDS = INTERRUPT_STATE_WORD + 1 };

static __always_inline __u64 word_at(const __u8 *bytes, __u32 offset)
{
	return *(const __u64 *)(bytes + offset);
}

static __always_inline __u32 half_at(const __u8 *bytes, __u32 offset)
{
	return *(const __u32 *)(bytes + offset);
}

/* The scratch of this CPU. */
static __always_inline struct scratch *find_scratch(void)
{
	const __u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/*
 * Functions that are not static are verified once, instead of in each state in which they are
 * called; verification takes 0.2 s. They take only numbers as arguments, so they look up the
 * scratch themselves.
 */

/* The offset of the contents of a str or bytes, from its length on. head is what was read of it. */
static __always_inline __u32 content_offset(const __u64 head[TEXT_HEAD_WORDS], bool is_str)
{
	const __u32 state = head[INTERRUPT_STATE_WORD] >> layout.text.kind_shift;

	return !is_str		     ? layout.text.bytes
	       : state & STATE_ASCII ? layout.text.ascii
				     : layout.text.compact;
}

/* The number of bytes that belong to it, from its length on. */
static __always_inline __u64 own_bytes(const __u64 head[TEXT_HEAD_WORDS], bool is_str)
{
	const __u32 state = head[INTERRUPT_STATE_WORD] >> layout.text.kind_shift;

	if (is_str && !(state & STATE_COMPACT))
		return sizeof(__u64);
	return content_offset(head, is_str) + head[0] * (is_str ? state & STATE_KIND : 1);
}

/* Read a str or bytes, from its length on, as far as there is room. Returns the number of bytes. */
static __always_inline __u32 read_text(__u8 *bytes, __u32 max_bytes, __u64 object_addr, bool is_str)
{
	const void *from = (void *)(object_addr + layout.text.length);
	__u64 head[TEXT_HEAD_WORDS] = {0};
	__u64 nr_bytes;

	if (bpf_probe_read_user(head, sizeof(head), from))
		return 0;
	nr_bytes = own_bytes(head, is_str);
	if (nr_bytes > max_bytes)
		nr_bytes = max_bytes;
	/* The compiler knows this limit and would drop the check; the verifier needs to see it. */
	asm volatile("" : "+r"(nr_bytes));
	return nr_bytes > max_bytes || bpf_probe_read_user(bytes, nr_bytes, from) ? 0 : nr_bytes;
}

/* Hash the beginning of a str or bytes. If it cannot be read the hash is unchanged. */
__noinline __u64 mix_text(__u64 hash, __u64 object_addr, __u32 is_str)
{
	__u64 words[IDENTITY_TEXT_WORDS];

	/* There is usually memory after a shorter object, so that one read is enough. */
	if (bpf_probe_read_user(words, sizeof(words), (void *)(object_addr + layout.text.length)) &&
	    !read_text((__u8 *)words, sizeof(words), object_addr, is_str))
		return hash;
	return identity_mix_text(hash, words, own_bytes(words, is_str),
				 content_offset(words, is_str));
}

/* Address of the length of the bytecode, which is a separate object before 3.11. */
static __always_inline __u64 bytecode_length_addr(const __u8 *code, __u32 offset)
{
	return word_at(code, offset & CODE_MASK) + layout.text.length;
}

/* Hash the contents of a code object that has no version. */
static __always_inline __u64 mix_texts(__u64 hash, const __u8 *code)
{
	const __u32 first = layout.code.first;
	__u64 length = 0;

	hash = mix_text(hash, word_at(code, layout.code.qualname - first & CODE_MASK), true);
	hash = mix_text(hash, word_at(code, layout.code.filename - first & CODE_MASK), true);
	hash = mix_text(hash, word_at(code, layout.code.linetable - first & CODE_MASK), false);
	if (layout.code.ob_size != INTERRUPT_ABSENT)
		hash = identity_mix(hash, word_at(code, layout.code.ob_size - first & CODE_MASK));
	if (layout.code.bytecode == INTERRUPT_ABSENT)
		return hash;
	hash = identity_mix(hash, word_at(code, layout.code.bytecode - first & CODE_MASK));
	(void)bpf_probe_read_user(&length, sizeof(length),
				  (void *)bytecode_length_addr(code, layout.code.bytecode - first));
	return identity_mix(hash, length);
}

/*
 * Read from the target. If that fails the record ends there, with the address. Returns whether it
 * failed.
 */
static __always_inline bool faults(struct interrupt_record *record, void *to, __u32 nr_bytes,
				   __u64 addr)
{
	if (!bpf_probe_read_user(to, nr_bytes, (void *)addr))
		return false;
	record->end = INTERRUPT_FAULT;
	record->fault_addr = addr;
	return true;
}

/*
 * Compute the identity of a live code object, which distinguishes it from earlier ones at its
 * address: its version, which is unique in its interpreter, or without one a hash of its
 * contents; 0 for any other object. Returns false if the record ends there.
 */
static __always_inline bool identify(struct scratch *scratch, __u64 addr)
{
	const __u32 first = layout.code.first;
	const __u8 *code = scratch->code.object;
	__u64 hash = identity_mix(identity_begin(), scratch->interpreter_id);
	__u32 version = 0;

	if (faults((void *)scratch->bytes, scratch->code.object, layout.code.size & CODE_MASK,
		   addr + first))
		return false;
	if (scratch->code_type_addr &&
	    word_at(code, layout.code.type - first & CODE_MASK) != scratch->code_type_addr)
		return true;
	if (layout.code.version != INTERRUPT_ABSENT)
		version = half_at(code, layout.code.version - first & CODE_MASK);
	hash = identity_mix(hash, word_at(code, layout.code.filename - first & CODE_MASK));
	hash = identity_mix(hash, word_at(code, layout.code.qualname - first & CODE_MASK));
	hash = identity_mix(hash, word_at(code, layout.code.linetable - first & CODE_MASK));
	hash = identity_mix(hash, half_at(code, layout.code.first_line - first & CODE_MASK));
	hash = identity_mix(hash, version);
	scratch->identity = (version ? hash : mix_texts(hash, code)) | 1;
	return true;
}

/*
 * Report a code object that was not reported before. What does not fit is left to the next
 * interrupt. Returns 0, or 1 if the record ends there.
 */
__noinline int report_code(__u64 addr, __u64 identity)
{
	struct scratch *scratch = find_scratch();
	struct interrupt_code *code;
	__u64 nr_bytes;

	if (!scratch || scratch->nr_new >= INTERRUPT_MAX_NEW_CODES)
		return 0;
	code = &scratch->code;
	if (faults((void *)scratch->bytes, code->object, layout.code.head_size & CODE_MASK, addr))
		return 1;
	code->bytecode_length = 0;
	if (layout.code.bytecode != INTERRUPT_ABSENT &&
	    faults((void *)scratch->bytes, &code->bytecode_length, sizeof(code->bytecode_length),
		   bytecode_length_addr(code->object, layout.code.bytecode)))
		return 1;
	scratch->nr_new++;
	code->head.kind = INTERRUPT_CODE;
	code->head.process_key = scratch->place.process_key;
	code->addr = addr;
	code->identity = identity;
	code->qualname_bytes =
		read_text(code->qualname, sizeof(code->qualname),
			  word_at(code->object, layout.code.qualname & CODE_MASK), true);
	code->filename_bytes =
		read_text(code->filename, sizeof(code->filename),
			  word_at(code->object, layout.code.filename & CODE_MASK), true);
	code->linetable_bytes =
		read_text(code->linetable, sizeof(code->linetable),
			  word_at(code->object, layout.code.linetable & CODE_MASK), false);
	nr_bytes = offsetof(struct interrupt_code, linetable) + code->linetable_bytes;
	if (nr_bytes > sizeof(*code))
		return 0;
	code->head.nr_bytes = nr_bytes;
	if (!bpf_ringbuf_output(&records, code, nr_bytes, BPF_RB_NO_WAKEUP))
		(void)bpf_map_update_elem(&known_codes, &scratch->place, &identity, BPF_ANY);
	return 0;
}

/*
 * Find the identity of what a frame runs, and report it if it is new. Returns 0, or 1 if the
 * record ends there.
 */
__noinline int identify_code(__u64 executable)
{
	struct scratch *scratch = find_scratch();
	const __u64 *known;

	if (!scratch)
		return 1;
	executable &= ~3ull; /* a tagged reference since 3.14 */
	if (executable == scratch->executable)
		return 0;
	scratch->executable = executable;
	scratch->identity = 0;
	if (!executable)
		return 0;
	if (!identify(scratch, executable))
		return 1;
	scratch->place.addr = executable;
	known = bpf_map_lookup_elem(&known_codes, &scratch->place);
	if (scratch->identity && (!known || *known != scratch->identity))
		return report_code(executable, scratch->identity);
	return 0;
}

static long add_frame(__u32 index, struct scratch **walk)
{
	const __u32 size = layout.frame.head_size & (INTERRUPT_FRAME_MAX_BYTES - 1);
	struct scratch *scratch = *walk;
	struct interrupt_record *record = (void *)scratch->bytes;
	const __u32 nr_bytes = record->head.nr_bytes;
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
	if (faults(record, bytes, size, addr))
		return 1;
	if (identify_code(
		    word_at(bytes, layout.frame.executable & (INTERRUPT_FRAME_MAX_BYTES - 1))))
		return 1;
	frame->addr = addr;
	frame->identity = scratch->identity;
	scratch->addr = word_at(bytes, layout.frame.previous & (INTERRUPT_FRAME_MAX_BYTES - 1));
	record->head.nr_bytes = nr_bytes + sizeof(*frame) + INTERRUPT_ROUND_UP(size);
	record->nr_frames = index + 1;
	return 0;
}

/* Add one of the loops of 3.10 to 3.12. The outermost _PyCFrame is the thread state's own. */
static long add_loop(__u32 index, struct scratch **walk)
{
	struct scratch *scratch = *walk;
	struct interrupt_record *record = (void *)scratch->bytes;
	const __u32 nr_bytes = record->head.nr_bytes;
	const __u64 addr = scratch->addr;
	struct interrupt_loop *loop;

	if (!addr || addr - record->state_addr < layout.state.size)
		return 1;
	if (nr_bytes > INTERRUPT_RECORD_MAX_BYTES - 2 * INTERRUPT_FRAME_MAX_BYTES) {
		record->end = INTERRUPT_TOO_DEEP;
		return 1;
	}
	loop = (void *)(scratch->bytes + nr_bytes);
	loop->addr = addr;
	loop->current_addr = 0;
	if (layout.cframe.current_frame != INTERRUPT_ABSENT &&
	    faults(record, &loop->current_addr, sizeof(loop->current_addr),
		   addr + layout.cframe.current_frame))
		return 1;
	record->head.nr_bytes = nr_bytes + sizeof(*loop);
	record->nr_loops = index + 1;
	return faults(record, &scratch->addr, sizeof(scratch->addr), addr + layout.cframe.previous);
}

/* Read the words besides the state and its frames. Returns whether they could be read. */
static __always_inline bool read_words(struct interrupt_record *record,
				       const struct interrupt_state *place)
{
	const __u32 gil_bytes = place->gil_bytes;

	record->collector = 0;
	record->tlbc_generation = 0;
	if (place->gil_addr && gil_bytes <= INTERRUPT_GIL_MAX_BYTES &&
	    faults(record, record->gil, gil_bytes, place->gil_addr))
		return false;
	if (place->collector_addr &&
	    faults(record, &record->collector, sizeof(record->collector), place->collector_addr))
		return false;
	return !place->tlbc_addr || !faults(record, &record->tlbc_generation,
					    sizeof(record->tlbc_generation), place->tlbc_addr);
}

/* Find the innermost frame and, in 3.10 to 3.12, the loops. Returns whether they could be read. */
static __always_inline bool read_ends(struct scratch *scratch, const __u8 *state)
{
	struct interrupt_record *record = (void *)scratch->bytes;

	scratch->end_addr = layout.state.base_frame == INTERRUPT_ABSENT
				    ? 0
				    : word_at(state, layout.state.base_frame & 511);
	if (layout.state.cframe != INTERRUPT_ABSENT)
		scratch->addr = word_at(state, layout.state.cframe & 511);
	if (layout.cframe.current_frame == INTERRUPT_ABSENT)
		record->current_addr = word_at(state, layout.state.current_frame & 511);
	else if (faults(record, &record->current_addr, sizeof(record->current_addr),
			scratch->addr + layout.cframe.current_frame))
		return false;
	if (layout.state.cframe != INTERRUPT_ABSENT)
		bpf_loop(INTERRUPT_MAX_STEPS, add_loop, &scratch, 0);
	return record->end == INTERRUPT_WHOLE;
}

/* Read a state and all its frames into the record. */
static __always_inline void record_state(struct scratch *scratch,
					 const struct interrupt_state *place)
{
	const __u32 state_bytes = layout.state.head_size & (INTERRUPT_STATE_MAX_BYTES - 1);
	struct interrupt_record *record = (void *)scratch->bytes;
	__u8 *state = (__u8 *)(record + 1);

	record->state_addr = place->addr;
	record->slot = place->slot;
	record->nr_frames = 0;
	record->nr_loops = 0;
	record->current_addr = 0;
	record->fault_addr = 0;
	scratch->interpreter_id = place->interpreter_id;
	scratch->executable = 0;
	scratch->identity = 0;
	record->end = INTERRUPT_WHOLE;
	record->head.nr_bytes = sizeof(*record) + INTERRUPT_ROUND_UP(state_bytes);
	if (!read_words(record, place) || faults(record, state, state_bytes, place->addr) ||
	    !read_ends(scratch, state))
		return;
	scratch->addr = record->current_addr;
	bpf_loop(INTERRUPT_MAX_STEPS, add_frame, &scratch, 0);
	if (scratch->addr && scratch->addr != scratch->end_addr && record->end == INTERRUPT_WHOLE)
		record->end = INTERRUPT_TOO_DEEP;
}

/* Read all states of a thread, one record each. Returns the number of records sent. */
static __always_inline __u32 record_states(struct scratch *scratch,
					   struct interrupt_process *process,
					   const struct interrupt_thread *thread)
{
	struct interrupt_record *record = (void *)scratch->bytes;
	__u32 nr_put = 0, nr_bytes;
	__u64 flags;

	for (__u32 i = 0; i < INTERRUPT_MAX_STATES && thread->states[i].addr; i++) {
		record_state(scratch, &thread->states[i]);
		nr_bytes = record->head.nr_bytes;
		/* Wake user space only for a fault that it can resolve. */
		flags = record->end == INTERRUPT_FAULT &&
					record->fault_addr != process->unreachable_addr
				? BPF_RB_FORCE_WAKEUP
				: BPF_RB_NO_WAKEUP;
		if (nr_bytes > INTERRUPT_RECORD_MAX_BYTES ||
		    bpf_ringbuf_output(&records, record, nr_bytes, flags))
			__sync_fetch_and_add(&process->nr_full, 1);
		else
			nr_put++;
	}
	return nr_put;
}

/*
 * Whether this interrupt of a thread is sampled, and for which part of the period it stands: a
 * random one of each period, or early on of each part of one. Several CPUs at once may take a few
 * more early ones.
 */
static __always_inline bool chooses(struct interrupt_process *process,
				    struct interrupt_thread *thread, __u32 *ret_nr_parts)
{
	const __u32 nr = process->nr_of_period;
	bool is_chosen;

	*ret_nr_parts = 1;
	if (nr <= 1)
		return true;
	if (thread->tick == 0) {
		/* Read once: another CPU may change it meanwhile. */
		const __u32 nr_early = *(volatile __u32 *)&process->nr_early;

		thread->nr_ticks = nr_early ? nr / INTERRUPT_EARLY_FACTOR : nr;
		thread->chosen = bpf_get_prandom_u32() % thread->nr_ticks;
		if (nr_early)
			process->nr_early = nr_early - 1;
	}
	*ret_nr_parts = nr / thread->nr_ticks;
	is_chosen = thread->tick == thread->chosen;
	thread->tick = thread->tick + 1 < thread->nr_ticks ? thread->tick + 1 : 0;
	return is_chosen;
}

/* The process of the thread. It is another one if the thread is of a process that was detached. */
static __always_inline struct interrupt_process *process_of(const struct interrupt_thread *thread)
{
	return &processes[thread->process_key % INTERRUPT_MAX_PROCESSES];
}

/*
 * The interrupted thread, counted, and the part of the period that it is sampled for; NULL: not a
 * thread of a process, or not sampled now.
 */
static __always_inline struct interrupt_thread *find_thread(struct interrupt_counts *count,
							    __u64 now_ns, __u32 *ret_nr_parts)
{
	const bool has_events = !layout.tick_addr && !has_cpu_events;
	struct bpf_pidns_info ids = {0};
	struct interrupt_process *process;
	struct interrupt_thread *thread;
	__u32 nr;

	if (bpf_get_ns_current_pid_tgid(layout.namespace_dev, layout.namespace_ino, &ids,
					sizeof(ids)))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &ids.pid);
	if (!thread) {
		count->nr_interrupts += has_events;
		count->nr_unknown += has_events;
		return NULL;
	}
	process = process_of(thread);
	if (process->key != thread->process_key || process->id != ids.tgid)
		return NULL;
	count->nr_interrupts++;
	nr = process->nr_of_period;
	if (has_events && nr && now_ns - thread->last_ns < layout.period_ns / nr / 2) {
		count->nr_duplicates++;
		return NULL;
	}
	thread->last_ns = now_ns;
	return chooses(process, thread, ret_nr_parts) ? thread : NULL;
}

/*
 * Record the states of the interrupted thread, if it is sampled now; begin_ns and count_ns go into
 * the records. Returns the number of records sent.
 */
static __always_inline __u32 record_thread(struct scratch *scratch, struct interrupt_counts *count,
					   __u64 begin_ns, __u64 count_ns)
{
	struct interrupt_record *record = (void *)scratch->bytes;
	const struct interrupt_thread *thread;
	struct interrupt_process *process;
	__u32 nr_parts, nr_put;

	thread = find_thread(count, begin_ns, &nr_parts);
	if (!thread)
		return 0;
	process = process_of(thread);
	record->head.kind = INTERRUPT_STACK;
	record->head.process_key = thread->process_key;
	scratch->place.process_key = thread->process_key;
	scratch->code_type_addr = process->code_type_addr;
	record->time_ns = begin_ns;
	record->count_ns = count_ns;
	record->nr_parts = nr_parts;
	scratch->nr_new = 0;
	nr_put = record_states(scratch, process, thread);
	count->program_ns += bpf_ktime_get_ns() - begin_ns;
	return nr_put;
}

/*
 * Returns 1 if the kernel is to go on and write the event's own record of this interrupt, which
 * has the same count.
 */
SEC("perf_event")
int handle_interrupt(struct bpf_perf_event_data *context)
{
	const __u64 begin_ns = bpf_ktime_get_ns();
	struct interrupt_counts *count;
	struct scratch *scratch;
	__u64 count_ns = 0;
	__u32 zero = 0;

	count = bpf_map_lookup_elem(&counts, &zero);
	scratch = find_scratch();
	if (!count || !scratch)
		return 0;
	if (!bpf_perf_prog_read_value(context, &scratch->event, sizeof(scratch->event)))
		count_ns = scratch->event.counter;
	return record_thread(scratch, count, begin_ns, count_ns) && count_ns;
}

/*
 * Runs whenever a timer of the kernel expires, in its interrupt, and ignores all timers but the
 * tick. Source: include/trace/events/timer.h.
 */
SEC("raw_tp/hrtimer_expire_entry")
int handle_tick(struct bpf_raw_tracepoint_args *context)
{
	const __u64 begin_ns = bpf_ktime_get_ns();
	struct interrupt_counts *count;
	struct scratch *scratch;
	__u64 function_addr;
	__u32 zero = 0;

	if (bpf_probe_read_kernel(&function_addr, sizeof(function_addr),
				  (void *)(context->args[0] + layout.timer_function_offset)) ||
	    function_addr != layout.tick_addr)
		return 0;
	count = bpf_map_lookup_elem(&counts, &zero);
	scratch = find_scratch();
	if (!count || !scratch)
		return 0;
	count->nr_ticks++;
	if (is_on)
		(void)record_thread(scratch, count, begin_ns, 0);
	return 0;
}
