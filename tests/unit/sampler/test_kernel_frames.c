/* SPDX-License-Identifier: MIT */
#include "sampler/native/kernel_frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem/sched/thread_wait.h"
#include "sampler/sampler_state.h"
#include "tests/support/fake_python.h"

/* A process that waits all the time, and the reader of its kernel frames. */
struct waiting {
	struct fake_python py;
	struct sampler sampler; /* only its code cache is used */
	struct process process;
	struct wait_place place;
	struct kernel_frames kernel;
	struct message why;
};

/* Returns 0, or -EPERM if reading where the process waits is not allowed here. */
static int waiting_init(struct waiting *waiting)
{
	pid_t pid;
	int err;

	*waiting = (struct waiting){.process = PROCESS_CLOSED};
	fake_python_init(&waiting->py, 14);
	code_cache_init(&waiting->sampler.codes, &waiting->py.fake.memory, &waiting->py.build);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	cr_assert(zero(int, process_open(pid, &waiting->process, &waiting->why)));
	while ((err = wait_place_read(&waiting->process, pid, 0, &waiting->place)) == -EAGAIN)
		sched_yield();
	if (err)
		return err;
	err = kernel_frames_open(&waiting->kernel, &waiting->process, &waiting->sampler,
				 &waiting->why);
	cr_assert(zero(int, err));
	return waiting->kernel.has_waiting ? 0 : -EPERM;
}

static void end(const struct waiting *waiting)
{
	(void)kill(waiting->process.pid, SIGKILL);
	(void)waitpid(waiting->process.pid, NULL, 0);
}

static void waiting_done(struct waiting *waiting)
{
	kernel_frames_close(&waiting->kernel);
	process_close(&waiting->process);
	code_cache_done(&waiting->sampler.codes);
	fake_python_done(&waiting->py);
}

static uint32_t nr_functions(struct waiting *waiting)
{
	cr_assert(zero(int, kernel_frames_set_waiting(&waiting->kernel, waiting->process.pid)));
	return waiting->kernel.nr_functions;
}

Test(kernel_frames, waiting_process_has_kernel_frames)
{
	static struct waiting waiting;

	if (waiting_init(&waiting)) {
		end(&waiting);
		waiting_done(&waiting);
		return;
	}
	cr_expect(lt(u32, 1, nr_functions(&waiting)));
	cr_expect(eq(int, waiting.kernel.functions[0]->kind, FUNCTION_KERNEL));
	end(&waiting);
	cr_expect(zero(u32, nr_functions(&waiting)));
	waiting_done(&waiting);
}

/* Kernel frames that were not requested are not read. */
Test(kernel_frames, closed_reader_has_no_frames)
{
	static struct waiting waiting;
	const uint64_t addr = UINT64_MAX - 4096;

	cr_expect(zero(int, kernel_frames_set_running(&waiting.kernel, &addr, 1)));
	cr_expect(zero(u32, waiting.kernel.nr_functions));
	cr_expect(zero(u32, nr_functions(&waiting)));
	kernel_frames_close(&waiting.kernel);
}
