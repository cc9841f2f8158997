/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupt_event.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/descriptor_limit.h"

int interrupt_event_open(const struct interrupts *interrupts, pid_t tid, int cpu,
			 uint64_t period_ns, struct interrupt_event *ret_event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
		.inherit = tid > 0,
		.inherit_thread = tid > 0,
		.exclude_hv = 1,
	};
	struct interrupt_event event = {.link = NULL};
	int err = 0;

	event.fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (event.fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	if (descriptor_limit_is_near(event.fd)) {
		err = -EMFILE;
	} else {
		event.link = bpf_program__attach_perf_event(
			interrupts->program->progs.handle_interrupt, event.fd);
		err = event.link ? 0 : -errno;
		/* Attaching enables it. */
		if (!err)
			err = interrupt_event_enable(&event, false);
		if (err && event.link)
			(void)bpf_link__destroy(event.link);
	}
	if (err && !event.link)
		(void)close(event.fd);
	if (!err)
		*ret_event = event;
	return err;
}

void interrupt_event_close(const struct interrupt_event *event)
{
	(void)bpf_link__destroy(event->link); /* closes the event as well */
}

int interrupt_event_enable(const struct interrupt_event *event, bool is_on)
{
	const unsigned long request = is_on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	return ioctl(event->fd, request, 0) ? -errno : 0;
}
