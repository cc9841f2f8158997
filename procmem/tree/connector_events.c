/* SPDX-License-Identifier: MIT */
/*
 * Process events from the proc connector, a netlink socket. The kernel sends each event of the
 * whole machine as one message. Neither the kernel's filter (Linux 6.6) nor a socket filter drops
 * those of threads: since 6.6 the connector takes a message that nobody accepts for a sign that
 * nobody listens, and falls silent (send_msg() in drivers/connector/cn_proc.c).
 */
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/tree/process_events.h"

/* Messages fetched per system call, and room for one: 76 bytes are sent. */
enum { MAX_MESSAGES = 32, MESSAGE_MAX_BYTES = 128 };

/* At most this many messages are skipped per call of next(). */
enum { MAX_SKIPPED = 1024 };

/* Room for 5,000 messages, which take some 770 bytes each. Without rights it is 550. */
enum { RECEIVE_BUFFER_BYTES = 4 << 20 };

struct connector_events {
	struct process_events events;
	uint32_t nr_messages, next; /* fetched, and the first that was not returned */
	ssize_t nr_bytes[MAX_MESSAGES];
	struct sockaddr_nl senders[MAX_MESSAGES];
	uint8_t messages[MAX_MESSAGES][MESSAGE_MAX_BYTES];
};

/* What a message holds, in the kernel's layout: no member is aligned to more than 4 bytes. */
struct connector_message {
	struct nlmsghdr netlink;
	struct cn_msg connector;
	struct proc_event event;
} __attribute__((packed));

/* Fetch messages. Returns 0, -ENOENT, or -ENOBUFS if some were lost. */
static int fetch(struct connector_events *connector)
{
	struct mmsghdr headers[MAX_MESSAGES];
	struct iovec vectors[MAX_MESSAGES];
	int nr;

	memset(headers, 0, sizeof(headers));
	for (size_t i = 0; i < MAX_MESSAGES; i++) {
		vectors[i] = (struct iovec){connector->messages[i], MESSAGE_MAX_BYTES};
		headers[i].msg_hdr.msg_iov = &vectors[i];
		headers[i].msg_hdr.msg_iovlen = 1;
		headers[i].msg_hdr.msg_name = &connector->senders[i];
		headers[i].msg_hdr.msg_namelen = sizeof(connector->senders[i]);
	}
	nr = recvmmsg(connector->events.fd, headers, MAX_MESSAGES, MSG_DONTWAIT, NULL);
	connector->next = 0;
	connector->nr_messages = nr < 0 ? 0 : (uint32_t)nr;
	for (int i = 0; i < nr; i++)
		connector->nr_bytes[i] = headers[i].msg_len;
	if (nr < 0)
		return errno == ENOBUFS ? -ENOBUFS : -ENOENT;
	return nr ? 0 : -ENOENT;
}

/* Get the next message of the kernel. Returns 0, -EBADMSG for another one, or fetch()'s errors. */
static int next_message(struct connector_events *connector, struct connector_message *ret_message)
{
	const int err = connector->next < connector->nr_messages ? 0 : fetch(connector);

	if (err)
		return err;
	const uint32_t i = connector->next++;

	memset(ret_message, 0, sizeof(*ret_message));
	memcpy(ret_message, connector->messages[i],
	       (size_t)connector->nr_bytes[i] < sizeof(*ret_message)
		       ? (size_t)connector->nr_bytes[i]
		       : sizeof(*ret_message));
	/* Port 0 is the kernel; other programs may send to us, too. */
	return connector->senders[i].nl_pid == 0 && ret_message->connector.id.idx == CN_IDX_PROC &&
			       ret_message->connector.id.val == CN_VAL_PROC &&
			       ret_message->connector.len >=
				       sizeof(struct proc_event) -
					       sizeof(ret_message->event.event_data)
		       ? 0
		       : -EBADMSG;
}

/* Returns whether the message is an event of a process. */
static bool decode(const struct connector_message *message, struct process_event *ret_event)
{
	/* The enum of old headers is signed; PROC_EVENT_EXIT has the highest bit. */
	const uint32_t what = (uint32_t)message->event.what;
	struct process_event event = {.wait_status = -1, .time_ns = message->event.timestamp_ns};

	if (what == PROC_EVENT_FORK) {
		event.kind = PROCESS_FORKED;
		event.pid = message->event.event_data.fork.child_pid;
		event.parent_pid = message->event.event_data.fork.parent_tgid;
		if (event.pid != message->event.event_data.fork.child_tgid)
			return false;
	} else if (what == PROC_EVENT_EXEC) {
		event.kind = PROCESS_CALLED_EXEC;
		event.pid = message->event.event_data.exec.process_tgid;
	} else if (what == (uint32_t)PROC_EVENT_EXIT) {
		event.kind = PROCESS_MAIN_THREAD_ENDED;
		event.pid = message->event.event_data.exit.process_pid;
		event.wait_status = (int)message->event.event_data.exit.exit_code;
		if (event.pid != message->event.event_data.exit.process_tgid)
			return false;
	} else {
		return false;
	}
	*ret_event = event;
	return true;
}

static int connector_next(struct process_events *events, struct process_event *ret_event)
{
	struct connector_events *connector = (struct connector_events *)events;
	struct connector_message message;

	for (unsigned int i = 0; i < MAX_SKIPPED; i++) {
		int err = next_message(connector, &message);

		if (err == -ENOENT)
			return err;
		if (err == -ENOBUFS) {
			*ret_event = (struct process_event){.kind = PROCESS_EVENTS_LOST,
							    .wait_status = -1};
			return 0;
		}
		if (!err && decode(&message, ret_event))
			return 0;
	}
	return -EAGAIN;
}

/* Tell the connector to begin or to end. ack is in its answer, plus one. */
static int send_operation(int fd, enum proc_cn_mcast_op operation, uint32_t ack)
{
	struct {
		struct nlmsghdr netlink;
		struct cn_msg connector;
		uint32_t operation;
	} __attribute__((packed)) request;

	memset(&request, 0, sizeof(request));
	request.netlink.nlmsg_len = sizeof(request);
	request.netlink.nlmsg_type = NLMSG_DONE;
	request.connector.id.idx = CN_IDX_PROC;
	request.connector.id.val = CN_VAL_PROC;
	request.connector.ack = ack;
	request.connector.len = sizeof(request.operation);
	request.operation = operation;
	return send(fd, &request, sizeof(request), 0) == sizeof(request) ? 0 : -errno;
}

static void connector_close(struct process_events *events)
{
	if (events->fd >= 0) {
		(void)send_operation(events->fd, PROC_CN_MCAST_IGNORE, 0);
		(void)close(events->fd);
	}
	free(events);
}

/*
 * Listen, and find the answer, which the kernel queues within send(). It gives none to other PID or
 * user namespaces, though their sockets do receive events, with ids of the initial one.
 */
static int listen_to_kernel(struct connector_events *connector)
{
	const uint32_t ack = (uint32_t)getpid();
	struct connector_message message;
	int err = send_operation(connector->events.fd, PROC_CN_MCAST_LISTEN, ack);

	/* Nobody receives in a network namespace without a connector. */
	if (err)
		return err == -ECONNREFUSED ? -ENOTSUP : err;
	for (unsigned int i = 0; i < MAX_SKIPPED; i++) {
		err = next_message(connector, &message);
		if (err == -ENOENT)
			return -ENOTSUP;
		if (!err && message.event.what == PROC_EVENT_NONE &&
		    message.connector.ack == ack + 1)
			return message.event.event_data.ack.err ? -EPERM : 0;
	}
	return -ENOTSUP;
}

int process_events_open_connector(struct process_events **ret_events)
{
	static const struct process_events_ops ops = {
		.next = connector_next,
		.close = connector_close,
	};
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	const int buffer_bytes = RECEIVE_BUFFER_BYTES, yes = 1;
	struct connector_events *connector = calloc(1, sizeof(*connector));
	int err;

	if (!connector)
		return -ENOMEM;
	connector->events = (struct process_events){.ops = &ops, .reports_ends = true};
	connector->events.fd =
		socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	err = connector->events.fd < 0 ||
			      bind(connector->events.fd, (const struct sockaddr *)&address,
				   sizeof(address)) != 0
		      ? -errno
		      : 0;
	if (err == -EPROTONOSUPPORT)
		err = -ENOTSUP;
	if (!err) {
		const int fd = connector->events.fd;

		/* Otherwise a full buffer looks to the connector as if nobody listened. */
		(void)setsockopt(fd, SOL_NETLINK, NETLINK_BROADCAST_ERROR, &yes, sizeof(yes));
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(buffer_bytes)))
			(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes,
					 sizeof(buffer_bytes));
		err = listen_to_kernel(connector);
	}
	if (err) {
		if (connector->events.fd >= 0)
			(void)close(connector->events.fd);
		free(connector);
		return err;
	}
	*ret_events = &connector->events;
	return 0;
}
