# SPDX-License-Identifier: MIT
"""forbid_call.py CALL ERRNO COMMAND...: run COMMAND under a seccomp filter, as sandboxes do, that
fails a system call with ERRNO (EPERM or ENOSYS).
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2  # linux/prctl.h, seccomp.h
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
CALLS = {
    "x86_64": {"process_vm_readv": 310, "process_vm_writev": 311, "perf_event_open": 298,
               "bpf": 321},
    "aarch64": {"process_vm_readv": 270, "process_vm_writev": 271, "perf_event_open": 241,
                "bpf": 280},
}[os.uname().machine]


def filter_program(call, number):
    """Allow every system call but one. The word at offset 0 of struct seccomp_data is the call's
    number."""
    instructions = [
        (LOAD_WORD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, CALLS[call]),
        (RETURN, 0, 0, SECCOMP_RET_ERRNO | number),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def forbid(call, number):
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(filter_program(call, number))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(code))
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program))):
        sys.exit("no seccomp filter: " + os.strerror(ctypes.get_errno()))


forbid(sys.argv[1], getattr(errno, sys.argv[2]))
os.execvp(sys.argv[3], sys.argv[3:])
