/* SPDX-License-Identifier: MIT */
#include "output/formats/flame_colour.h"

#include "output/text/text.h"

/* A colour channel: a minimum, and a range that is scaled by a byte of the name's hash. */
struct channel {
	uint8_t least, more, part;
};

static uint8_t shade(struct channel channel, uint32_t hash)
{
	return (uint8_t)(channel.least + channel.more * (hash >> (channel.part * 8) & 0xff) / 0xff);
}

struct rgb flame_colour(enum origin origin, const char *name)
{
	/*
	 * Source: flamegraph.pl, color(): hot, aqua, yellow, blue, purple, green, orange. Tasks are
	 * sky blue.
	 */
	static const struct channel hues[NR_ORIGINS][3] = {
		[ORIGIN_APPLICATION] = {{205, 50, 2}, {30, 180, 0}, {0, 55, 1}},
		[ORIGIN_SITE_PACKAGES] = {{50, 60, 0}, {165, 55, 0}, {165, 55, 0}},
		[ORIGIN_STANDARD_LIBRARY] = {{185, 55, 0}, {185, 55, 0}, {50, 20, 0}},
		[ORIGIN_NATIVE] = {{90, 60, 0}, {90, 60, 0}, {205, 50, 0}},
		[ORIGIN_JIT] = {{190, 65, 0}, {90, 60, 0}, {190, 65, 0}},
		[ORIGIN_COLLECTOR] = {{60, 60, 0}, {190, 55, 0}, {60, 60, 0}},
		[ORIGIN_KERNEL] = {{190, 65, 0}, {100, 65, 0}, {0, 0, 0}},
		[ORIGIN_TASK] = {{40, 40, 0}, {140, 50, 0}, {215, 40, 0}},
		[ORIGIN_OTHER] = {{200, 25, 0}, {200, 25, 0}, {200, 25, 0}},
	};
	const uint32_t hash = text_hash(name);

	return (struct rgb){shade(hues[origin][0], hash), shade(hues[origin][1], hash),
			    shade(hues[origin][2], hash)};
}

struct rgb flame_colour_of_change(double change)
{
	uint8_t faded = (uint8_t)(250 - 210 * (change < 0 ? -change : change));

	return change < 0 ? (struct rgb){faded, faded, 250} : (struct rgb){250, faded, faded};
}
