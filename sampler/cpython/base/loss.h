/* SPDX-License-Identifier: MIT */
/* Reasons for which a stack is not accepted. */
#pragma once

/* Why a stack was not accepted; counted, never guessed around. */
enum sample_loss {
	LOSS_MOVED,	 /* its thread, or the GIL's holder, may have run during the look */
	LOSS_LOCK,	 /* the sampler had to wait for the target's memory map, or for a page */
	LOSS_LATE,	 /* the look came late, and only because the thread had gone to sleep */
	LOSS_UNFINISHED, /* it was between two stores of a call, a return or a yield */
	LOSS_CODE,	 /* no room for what one of its frames runs, or that is gone */
	LOSS_FAULT,	 /* something was not in memory when the thread was interrupted */
	LOSS_SKIPPED,  /* interrupts: there was no room, or the kernel was busy with another one */
	LOSS_TOO_DEEP, /* more frames than the named limit */
	NR_SAMPLE_LOSSES,
};
