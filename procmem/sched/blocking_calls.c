/* SPDX-License-Identifier: MIT */
#include "procmem/sched/blocking_calls.h"

#include <stddef.h>
#include <sys/syscall.h>

/* A row of the table. */
struct row {
	int64_t number;
	struct blocking_call call;
};

/* aarch64 lacks those that have a newer form. */
static const struct row rows[] = {
	{SYS_futex, {"futex", CALL_FUTEX}},
	{SYS_read, {"read", CALL_DESCRIPTOR}},
	{SYS_write, {"write", CALL_DESCRIPTOR}},
	{SYS_readv, {"readv", CALL_DESCRIPTOR}},
	{SYS_writev, {"writev", CALL_DESCRIPTOR}},
	{SYS_pread64, {"pread64", CALL_DESCRIPTOR}},
	{SYS_pwrite64, {"pwrite64", CALL_DESCRIPTOR}},
	{SYS_fsync, {"fsync", CALL_DESCRIPTOR}},
	{SYS_fdatasync, {"fdatasync", CALL_DESCRIPTOR}},
	{SYS_ioctl, {"ioctl", CALL_DESCRIPTOR}},
	{SYS_getdents64, {"getdents64", CALL_DESCRIPTOR}},
	{SYS_recvfrom, {"recvfrom", CALL_DESCRIPTOR}},
	{SYS_recvmsg, {"recvmsg", CALL_DESCRIPTOR}},
	{SYS_recvmmsg, {"recvmmsg", CALL_DESCRIPTOR}},
	{SYS_sendto, {"sendto", CALL_DESCRIPTOR}},
	{SYS_sendmsg, {"sendmsg", CALL_DESCRIPTOR}},
	{SYS_sendmmsg, {"sendmmsg", CALL_DESCRIPTOR}},
	{SYS_sendfile, {"sendfile", CALL_DESCRIPTOR}},
	{SYS_splice, {"splice", CALL_DESCRIPTOR}},
	{SYS_accept, {"accept", CALL_DESCRIPTOR}},
	{SYS_accept4, {"accept4", CALL_DESCRIPTOR}},
	{SYS_connect, {"connect", CALL_DESCRIPTOR}},
	{SYS_ppoll, {"ppoll", CALL_POLL}},
	{SYS_pselect6, {"pselect6", CALL_SELECT}},
	{SYS_epoll_pwait, {"epoll_pwait", CALL_EPOLL}},
	{SYS_wait4, {"wait4", CALL_WAIT4}},
	{SYS_waitid, {"waitid", CALL_WAITID}},
	{SYS_nanosleep, {"nanosleep", CALL_SLEEP}},
	{SYS_clock_nanosleep, {"clock_nanosleep", CALL_CLOCK_SLEEP}},
	{SYS_flock, {"flock", CALL_FLOCK}},
	{SYS_fcntl, {"fcntl", CALL_FCNTL}},
	{SYS_rt_sigtimedwait, {"rt_sigtimedwait", CALL_OTHER}},
	{SYS_rt_sigsuspend, {"rt_sigsuspend", CALL_OTHER}},
	{SYS_restart_syscall, {"restart_syscall", CALL_OTHER}},
	{SYS_openat, {"openat", CALL_OTHER}},
	{SYS_io_getevents, {"io_getevents", CALL_OTHER}},
	{SYS_mq_timedreceive, {"mq_timedreceive", CALL_OTHER}},
	{SYS_mq_timedsend, {"mq_timedsend", CALL_OTHER}},
	{SYS_msgrcv, {"msgrcv", CALL_OTHER}},
	{SYS_msgsnd, {"msgsnd", CALL_OTHER}},
	{SYS_semtimedop, {"semtimedop", CALL_OTHER}},
	{SYS_semop, {"semop", CALL_OTHER}},
	{SYS_sync, {"sync", CALL_OTHER}},
	{SYS_exit, {"exit", CALL_OTHER}},
	{SYS_exit_group, {"exit_group", CALL_OTHER}},
	{SYS_execve, {"execve", CALL_OTHER}},
	{SYS_clone, {"clone", CALL_OTHER}},
#ifdef SYS_futex_waitv
	{SYS_futex_waitv, {"futex_waitv", CALL_OTHER}},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, {"epoll_pwait2", CALL_EPOLL}},
#endif
#ifdef SYS_io_uring_enter
	{SYS_io_uring_enter, {"io_uring_enter", CALL_DESCRIPTOR}},
#endif
#ifdef SYS_poll
	{SYS_poll, {"poll", CALL_POLL}},
	{SYS_select, {"select", CALL_SELECT}},
	{SYS_epoll_wait, {"epoll_wait", CALL_EPOLL}},
	{SYS_pause, {"pause", CALL_OTHER}},
	{SYS_open, {"open", CALL_OTHER}},
	{SYS_vfork, {"vfork", CALL_OTHER}},
#endif
};

const struct blocking_call *blocking_call_find(int64_t number)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].number == number)
			return &rows[i].call;
	return NULL;
}
