/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"

int pprof_message_append(struct pprof_message *message, const Perftools__Profiles__Profile *part)
{
	size_t length = perftools__profiles__profile__get_packed_size(part);

	if (length > message->max_packed) {
		size_t max = length > SIZE_MAX / 2 ? length : length * 2;
		uint8_t *packed = realloc(message->packed, max);

		if (!packed)
			return -ENOMEM;
		message->packed = packed;
		message->max_packed = max;
	}
	(void)perftools__profiles__profile__pack(part, message->packed);
	errno = EIO; /* in case the stream fails without setting it */
	return fwrite(message->packed, 1, length, message->out) == length ? 0 : -errno;
}

int pprof_message_append_location(struct pprof_message *message,
				  Perftools__Profiles__Location *location)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	part.n_location = 1;
	part.location = &location;
	return pprof_message_append(message, &part);
}

int pprof_message_append_sample(struct pprof_message *message, Perftools__Profiles__Sample *sample)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	part.n_sample = 1;
	part.sample = &sample;
	return pprof_message_append(message, &part);
}

int pprof_message_append_string(struct pprof_message *message, const char *string)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	char *strings[1];

	text_clear(&message->text);
	label_append_escaped(&message->text, string, strlen(string), LABEL_DISPLAY);
	if (message->text.error)
		return message->text.error;
	strings[0] = message->text.bytes ? message->text.bytes : (char[]){""};
	part.n_string_table = 1;
	part.string_table = strings;
	return pprof_message_append(message, &part);
}

int pprof_message_string(struct pprof_message *message, const char *string, int64_t *ret_index)
{
	const uint32_t nr = message->strings.nr;
	uint32_t index;
	int err = string_table_get(&message->strings, string, &index);

	if (!err && index == nr)
		err = pprof_message_append_string(message, string);
	*ret_index = err ? 0 : index;
	return err;
}

void pprof_message_done(struct pprof_message *message)
{
	string_table_done(&message->strings);
	text_done(&message->text);
	free(message->packed);
}
