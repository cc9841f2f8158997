/* SPDX-License-Identifier: MIT */
/*
 * What the BPF program and its user say to each other: where things lie in the target, which threads
 * there are, and one record for each interrupt. Both sides are compiled with this file.
 */
#pragma once

#include <linux/types.h>

/* The longest record: of a stack of 1,700 frames and more. */
#define INTERRUPT_RECORD_MAX_BYTES (256u << 10)

/* So many bytes of records there is room for until they are taken. */
#define INTERRUPT_RING_BYTES (1u << 20)

/* More frames than a record has room for, or loops. */
#define INTERRUPT_MAX_STEPS (1u << 14)

/* So much is read of a frame, and so much more may a record have of it, at most. */
#define INTERRUPT_FRAME_MAX_BYTES 256u

/* What is read of a thread state, from its start on, is less than half of that. */
#define INTERRUPT_STATE_MAX_BYTES 1024u

/* And what of a code object less than that; of what it names so much, from its length on. */
#define INTERRUPT_CODE_MAX_BYTES      256u
#define INTERRUPT_NAME_MAX_BYTES      192u
#define INTERRUPT_PATH_MAX_BYTES      320u
#define INTERRUPT_LINETABLE_MAX_BYTES 4096u

/* The third word of a str from its length on has its kind, in all versions. */
#define INTERRUPT_STATE_WORD 2

/* So many code objects that are new may an interrupt tell; the others are told by the next ones. */
#define INTERRUPT_MAX_NEW_CODES 128

/*
 * So many that were told are remembered, those that nobody met for longest make room; and so many for each
 * processor, as each keeps 128 places for itself.
 * Source: kernel/bpf/bpf_lru_list.c (LOCAL_FREE_TARGET).
 */
#define INTERRUPT_KNOWN_CODES		 16384
#define INTERRUPT_KNOWN_CODES_OF_ONE_CPU 256

/* A GIL's words, and the flag of free-threaded builds before them (sampler/gil.h). */
#define INTERRUPT_GIL_MAX_BYTES 40u

/* A field that this version does not have. */
#define INTERRUPT_ABSENT 0xffffffffu

/* Where things lie: offsets in bytes. Set before the program is loaded, and constant for it. */
struct interrupt_layout {
	/* The PID namespace of the target, whose ids those of its threads are. */
	__u64 namespace_dev, namespace_ino;
	__u32 process_id; /* in there */
	struct {
		__u32 size;
		__u32 head_size; /* so many bytes of it are read */
		__u32 current_frame, base_frame, cframe;
	} state;
	struct {
		__u32 current_frame, previous;
	} cframe;
	struct {
		__u32 head_size; /* so many bytes of a frame are read */
		__u32 previous, executable;
	} frame;
	struct {
		__u32 head_size; /* so many bytes of it are told */
		/* Those from first on have what tells it from others. */
		__u32 first, size;
		__u32 type, ob_size, filename, qualname, linetable, bytecode, first_line, version;
	} code;
	struct {
		__u32 length;	  /* of a str, and of a bytes; what follows is counted from there */
		__u32 state;	  /* of a str: in word INTERRUPT_STATE_WORD */
		__u32 kind_shift; /* of that: three bits of kind, compact, ascii */
		__u32 ascii, compact, bytes; /* where the contents begin */
	} text;
	__u64 period_ns; /* of CPU time, between two interrupts of a thread; 0: the kernel's tick is */
	struct {
		__u64 function_addr; /* of the tick, in the kernel */
		__u32 nr_of_period;  /* so many of a thread's ticks are one period */
	} tick;
};

/* What the program has to know of a thread state. */
struct interrupt_state {
	__u64 addr;	      /* 0: there is none */
	__u64 gil_addr;	      /* where its GIL's words begin; 0: there are none */
	__u64 collector_addr; /* of the word that tells of a collection; 0: none does */
	__u64 interpreter_id; /* which no other one has, or had */
	__u64 tlbc_addr;      /* of the counter of thread-local bytecode; 0: there is none */
	__u32 gil_bytes;      /* there */
	__u32 slot;	      /* the user's */
};

/* A thread has a state in each interpreter that it has been in; so many are told. */
#define INTERRUPT_MAX_STATES 4

/* And what of a thread, by its id in its own namespace. */
struct interrupt_thread {
	struct interrupt_state states[INTERRUPT_MAX_STATES];
	/* The program's: */
	__u64 last_ns; /* when it was interrupted last */
	__u32 tick;    /* of its period */
	__u32 chosen;  /* the one that counts */
};

/* What a record is of. */
enum interrupt_kind { INTERRUPT_STACK, INTERRUPT_CODE };

/* Each begins with this. */
struct interrupt_head {
	__u32 kind;
	__u32 nr_bytes; /* of all of it */
};

/* How a walk ended. */
enum interrupt_end {
	INTERRUPT_WHOLE,
	INTERRUPT_FAULT, /* something was not in memory; what was read before that says nothing */
	INTERRUPT_TOO_DEEP,
};

/* One frame, innermost first; behind it layout.frame.head_size bytes of it, rounded up to 8. */
struct interrupt_frame {
	__u64 addr;
	__u64 identity; /* of its code object, as that was told before; 0: it is none */
};

/* One call of the loop that has a _PyCFrame (3.10 to 3.12), innermost first. */
struct interrupt_loop {
	__u64 addr;
	__u64 current_addr; /* of the frame that it runs; 0 in 3.10 */
};

/*
 * A thread state as the interrupt met it; behind it layout.state.head_size bytes, rounded up, the loops,
 * and the frames.
 */
struct interrupt_record {
	struct interrupt_head head; /* INTERRUPT_STACK */
	__u64 time_ns;		    /* CLOCK_MONOTONIC */
	__u64 count_ns;		    /* of the event, so far; 0: not told */
	__u64 state_addr;
	__u64 current_addr; /* of the innermost frame */
	__u64 fault_addr;   /* what could not be read there, if that was a fault */
	__u64 collector;    /* the word at collector_addr */
	__u8 gil[INTERRUPT_GIL_MAX_BYTES];
	__u32 slot; /* the user's, as it was told */
	__u32 tlbc_generation;
	__u32 nr_loops;
	__u32 nr_frames;
	__u32 end; /* enum interrupt_end */
};

/*
 * A code object that a stack has behind this record, as the interrupt met it, alive, and what it names,
 * each as far as there is room: 0 bytes of what was not in memory.
 */
struct interrupt_code {
	struct interrupt_head head; /* INTERRUPT_CODE */
	__u64 addr;
	__u64 identity; /* told once, until another one is met at its address or it is forgotten */
	__u32 qualname_bytes, filename_bytes, linetable_bytes, unused;
	__u64 bytecode_length; /* of that which is an object of its own */
	__u8 object[INTERRUPT_CODE_MAX_BYTES];
	__u8 qualname[INTERRUPT_NAME_MAX_BYTES];
	__u8 filename[INTERRUPT_PATH_MAX_BYTES];
	__u8 linetable[INTERRUPT_LINETABLE_MAX_BYTES];
};

/* Exact counters, of all processors. */
struct interrupt_counts {
	__u64 nr_interrupts; /* of the process's threads */
	__u64 nr_unknown; /* of these, of threads that have no state, or of which the user has not told */
	__u64 nr_doubled; /* the thread has two events: it was made while they were opened */
	__u64 nr_full;	  /* there was no room for the record */
	__u64 nr_skipped; /* the kernel's: it did not run the program, which ran already */
	__u64 taken_ns;	  /* by the program */
	__u64 nr_ticks;	  /* of all threads there are: the program is told of them */
};

/* So many bytes take those, and what follows them begins at a word. */
#define INTERRUPT_ROUND_UP(nr_bytes) (((nr_bytes) + 7u) & ~7u)
