/* SPDX-License-Identifier: MIT */
/* The container that a process is in, as far as the names of its control groups show it. */
#pragma once

#include "procmem/process.h"

/* Room for 12 hexadecimal digits, as docker ps shows them, or a name of LXC; a longer one is cut. */
enum { CONTAINER_ID_MAX_BYTES = 33 };

/*
 * Find the container in the text of /proc/PID/cgroup, terminated: the first 12 of the 64 digits of
 * Docker, Podman, containerd, CRI-O and Kubernetes, or the name of an LXC or systemd-nspawn
 * container. "" if there is none. Of nested containers it is the innermost.
 *
 *     0::/system.slice/docker-4f1c…e9.scope
 *     0::/kubepods.slice/…/cri-containerd-4f1c…e9.scope
 *     12:cpu,cpuacct:/docker/4f1c…e9
 *     0::/lxc.payload.web1/init.scope
 *     0::/machine.slice/machine-web1.scope
 */
void container_parse(const char *cgroups, char ret_id[CONTAINER_ID_MAX_BYTES]);

/* The same of a process; "" if its file cannot be read. */
void container_read(const struct process *process, char ret_id[CONTAINER_ID_MAX_BYTES]);
