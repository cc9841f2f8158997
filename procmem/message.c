/* SPDX-License-Identifier: MIT */
#include "procmem/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void message_set(struct message *message, const char *format, ...)
{
	int saved_errno = errno;
	va_list args;

	if (!message)
		return;
	va_start(args, format);
	if (vsnprintf(message->text, sizeof(message->text), format, args) < 0)
		message->text[0] = '\0';
	va_end(args);
	errno = saved_errno;
}
