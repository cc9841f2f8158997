/* SPDX-License-Identifier: MIT */
/*
 * The protocol between the BPF program and user space: where things are in the processes that it
 * samples, their threads, and one record per interrupt. Both sides are compiled with this file.
 */
#pragma once

#include <linux/types.h>

/* The longest record: a stack of 1,700 frames and more. */
#define INTERRUPT_RECORD_MAX_BYTES (256u << 10)

/* Room for records that were not taken yet, of all processes. */
#define INTERRUPT_RING_BYTES (1u << 20)

/* More frames, or loops, than a record has room for. */
#define INTERRUPT_MAX_STEPS (1u << 14)

/* Less than this is read of a frame; its entry in a record takes less than twice this. */
#define INTERRUPT_FRAME_MAX_BYTES 256u

/* A thread state is read from its start, at most half of this. */
#define INTERRUPT_STATE_MAX_BYTES 1024u

/*
 * Less than this is read of a code object, from its start. The other limits are for the objects
 * that it refers to, each read from its length on.
 */
#define INTERRUPT_CODE_MAX_BYTES      256u
#define INTERRUPT_NAME_MAX_BYTES      192u
#define INTERRUPT_PATH_MAX_BYTES      320u
#define INTERRUPT_LINETABLE_MAX_BYTES 4096u

/* The word that has a str's kind, counted from its length, in all versions. */
#define INTERRUPT_STATE_WORD 2

/* Number of new code objects that an interrupt may report; the next ones report the rest. */
#define INTERRUPT_MAX_NEW_CODES 128

/*
 * Number of reported code objects that are remembered; the least recently met ones are evicted.
 * On machines with many CPUs it is a number per CPU, since each keeps 128 entries for itself.
 *
 * Source: kernel/bpf/bpf_lru_list.c (LOCAL_FREE_TARGET).
 */
#define INTERRUPT_KNOWN_CODES		 16384
#define INTERRUPT_KNOWN_CODES_OF_ONE_CPU 256

/* A GIL's words, preceded by the flag of free-threaded builds (sampler/gil.h). */
#define INTERRUPT_GIL_MAX_BYTES 40u

/*
 * Number of processes that one program samples at a time; a power of two. The others are sampled
 * without a program.
 */
#define INTERRUPT_MAX_PROCESSES 4096u

/*
 * The first samples of a new process, those of two periods, come at this multiple of the rate. That
 * takes more than one interrupt per period.
 */
#define INTERRUPT_EARLY_FACTOR	   4u
#define INTERRUPT_NEW_NR_OF_PERIOD 8u
#define INTERRUPT_EARLY_SAMPLES	   (2 * INTERRUPT_EARLY_FACTOR)

/* The offset of a field that this version does not have. */
#define INTERRUPT_ABSENT 0xffffffffu

/* Offsets in bytes. Set before the program is loaded, and constant for it. */
struct interrupt_layout {
	/* The PID namespace of all its processes, to which their ids and thread ids belong. */
	__u64 namespace_dev, namespace_ino;
	struct {
		__u32 size;
		__u32 head_size; /* bytes read of it */
		__u32 current_frame, base_frame, cframe;
	} state;
	struct {
		__u32 current_frame, previous;
	} cframe;
	struct {
		__u32 head_size; /* bytes read of a frame */
		__u32 previous, executable;
	} frame;
	struct {
		__u32 head_size; /* bytes reported of it */
		/* The size bytes from first on have the fields that identify it. */
		__u32 first, size;
		__u32 type, ob_size, filename, qualname, linetable, bytecode, first_line, version;
	} code;
	struct {
		__u32 length;	  /* of a str or bytes; the other offsets count from there */
		__u32 state;	  /* of a str: in word INTERRUPT_STATE_WORD */
		__u32 kind_shift; /* in that word: three bits of kind, then compact, ascii */
		__u32 ascii, compact, bytes; /* start of the contents */
	} text;
	/* CPU time that a sample stands for; 0: the kernel's tick is used */
	__u64 period_ns;
	__u64 tick_addr;	     /* of the tick's function in the kernel; 0: there are events */
	__u64 timer_function_offset; /* in the kernel's struct hrtimer */
};

/*
 * A process that is sampled: element key % INTERRUPT_MAX_PROCESSES of an array in the program's
 * memory, which user space maps. User space writes everything but nr_full, and sets nr_early once.
 */
struct interrupt_process {
	__u64 key; /* never reused by the program; 0: unused, or not sampled now */
	/* &PyCode_Type, which user space learns from the reports; 0: unknown. */
	__u64 code_type_addr;
	/* An address that user space could not read either: a fault there wakes nobody. */
	__u64 unreachable_addr;
	__u64 nr_full;	    /* records for which there was no room */
	__u32 id;	    /* of the process */
	__u32 nr_of_period; /* number of a thread's interrupts per period; one is sampled */
	__u32 nr_early;	    /* number of samples left that come at the higher rate */
};

/* What the program needs to know about a thread state. */
struct interrupt_state {
	__u64 addr;	      /* 0: unused */
	__u64 gil_addr;	      /* of its GIL's words; 0: none */
	__u64 collector_addr; /* of the word that reports a collection; 0: none */
	__u64 interpreter_id; /* never reused */
	__u64 tlbc_addr;      /* of the generation of thread-local bytecode; 0: none */
	__u32 gil_bytes;      /* number of bytes at gil_addr */
	__u32 slot;	      /* user space's */
};

/* A thread has a state in each interpreter that it has been in; this many are reported. */
#define INTERRUPT_MAX_STATES 4

/* What the program needs to know about a thread; the key is its id in its own namespace. */
struct interrupt_thread {
	struct interrupt_state states[INTERRUPT_MAX_STATES];
	__u64 process_key;
	/* Used by the program only: */
	__u64 last_ns;	/* time of its last interrupt */
	__u32 nr_ticks; /* length of its current round of interrupts: a period or a part of one */
	__u32 tick;	/* index in the round */
	__u32 chosen;	/* the index that is sampled */
};

/* The kind of a record. */
enum interrupt_kind { INTERRUPT_STACK, INTERRUPT_CODE };

/* The start of each record. */
struct interrupt_head {
	__u32 kind;
	__u32 nr_bytes; /* of the whole record */
	__u64 process_key;
};

/* How a walk ended. */
enum interrupt_end {
	INTERRUPT_WHOLE,
	INTERRUPT_FAULT, /* something was not in memory: the record has no usable stack */
	INTERRUPT_TOO_DEEP,
};

/* One frame, innermost first, followed by layout.frame.head_size bytes of it, rounded up to 8. */
struct interrupt_frame {
	__u64 addr;
	__u64 identity; /* of its code object, as reported before; 0: it runs no code object */
};

/* One call of the loop, which has a _PyCFrame (3.10 to 3.12), innermost first. */
struct interrupt_loop {
	__u64 addr;
	__u64 current_addr; /* of the frame that it runs; 0 in 3.10 */
};

/*
 * A thread state at the interrupt, followed by layout.state.head_size bytes of it, rounded up,
 * then the loops, then the frames.
 */
struct interrupt_record {
	struct interrupt_head head; /* INTERRUPT_STACK */
	__u64 time_ns;		    /* CLOCK_MONOTONIC */
	__u64 count_ns;		    /* the event's count so far; 0: unknown */
	__u64 state_addr;
	__u64 current_addr; /* of the innermost frame */
	__u64 fault_addr;   /* what could not be read, if end is INTERRUPT_FAULT */
	__u64 collector;    /* the word at collector_addr */
	__u8 gil[INTERRUPT_GIL_MAX_BYTES];
	__u32 slot; /* as in struct interrupt_state */
	__u32 tlbc_generation;
	__u32 nr_loops;
	__u32 nr_frames;
	__u32 end;	/* enum interrupt_end */
	__u32 nr_parts; /* it stands for one part of so many of the period */
};

/*
 * A live code object, as the interrupt found it, of a stack whose record follows, with copies of
 * the objects that it refers to. A copy is cut where its room ends; an object that was not in
 * memory has 0 bytes.
 */
struct interrupt_code {
	struct interrupt_head head; /* INTERRUPT_CODE */
	__u64 addr;
	/* reported once a process, until another is found at addr or user space forgets it */
	__u64 identity;
	__u32 qualname_bytes, filename_bytes, linetable_bytes, unused;
	__u64 bytecode_length; /* for bytecode that is a separate object */
	__u8 object[INTERRUPT_CODE_MAX_BYTES];
	__u8 qualname[INTERRUPT_NAME_MAX_BYTES];
	__u8 filename[INTERRUPT_PATH_MAX_BYTES];
	__u8 linetable[INTERRUPT_LINETABLE_MAX_BYTES];
};

/* Exact counters of a program, summed over all CPUs and processes. */
struct interrupt_counts {
	__u64 nr_interrupts; /* threads of its processes that were interrupted */
	/*
	 * Of these, threads that have an event but no state, or none that the program knows. The
	 * tick, which all threads of the system have, cannot tell such threads from others.
	 */
	__u64 nr_unknown;
	__u64 nr_duplicates; /* the thread has two events: it was made while they were opened */
	__u64 nr_skipped;    /* from the kernel: the program was already running */
	__u64 program_ns;    /* time that the program took */
	__u64 nr_ticks;	     /* of all threads of the system: each one runs the program */
};

/* Records are padded like this, so that what follows begins at a word. */
#define INTERRUPT_ROUND_UP(nr_bytes) (((nr_bytes) + 7u) & ~7u)
