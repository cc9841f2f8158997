/* SPDX-License-Identifier: MIT */
#include "sampler/python/offsets.h"

#include <errno.h>
#include <stdio.h>

#include "sampler/python/build_check.h"
#include "sampler/python/debug_offsets_match.h"
#include "sampler/python/offsets_tables.h"
#include "sampler/python/offsets_tables_heap.h"

/* The newest version whose debug offsets are known; the tables of those that have none. */
enum { NEWEST_MINOR = 15, NR_TABLES = 7 };

void version_format(uint32_t version_hex, char ret_text[VERSION_MAX_BYTES])
{
	static const struct {
		unsigned int level;
		const char *mark;
	} levels[] = {{0xa, "a"}, {0xb, "b"}, {0xc, "rc"}};
	unsigned int level = version_hex >> 4 & 0xf;
	int used;

	if (!(version_hex & 0xffff)) {
		(void)snprintf(ret_text, VERSION_MAX_BYTES, "%u.%u", version_hex >> 24,
			       version_hex >> 16 & 0xff);
		return;
	}
	used = snprintf(ret_text, VERSION_MAX_BYTES, "%u.%u.%u", version_hex >> 24,
			version_hex >> 16 & 0xff, version_hex >> 8 & 0xff);

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (levels[i].level == level)
			(void)snprintf(ret_text + used, VERSION_MAX_BYTES - (size_t)used, "%s%u",
				       levels[i].mark, version_hex & 0xf);
}

static const struct version_table *table_find(uint32_t version_hex)
{
	static const struct version_table *const tables[NR_TABLES] = {
		&version_3_6,  &version_3_7,  &version_3_8, &version_3_9,
		&version_3_10, &version_3_11, &version_3_12};

	for (size_t i = 0; i < NR_TABLES; i++)
		if (version_hex >> 16 == (0x0300u | tables[i]->minor))
			return tables[i];
	return NULL;
}

int offsets_of_version(uint32_t version_hex, struct py_build *ret_build, struct message *reterr)
{
	const struct version_table *table = table_find(version_hex);
	char version[VERSION_MAX_BYTES];

	if (table) {
		*ret_build = (struct py_build){
			.version_hex = version_hex,
			.offsets = table->offsets,
			.traits = table->traits,
		};
		return 0;
	}
	version_format(version_hex, version);
	message_set(reterr,
		    version_hex ? "the target runs CPython %s; this pysample "
				  "knows " SUPPORTED_VERSIONS
				: "the version of the target's CPython cannot be "
				  "told%.0s; this pysample knows " SUPPORTED_VERSIONS,
		    version);
	return -ENOTSUP;
}

/* Why debug offsets were refused: a sentence and the error that goes with it. */
static int explain_contradiction(uint32_t version_hex, struct message *reterr)
{
	char version[VERSION_MAX_BYTES];

	version_format(version_hex, version);
	if ((version_hex >> 16 & 0xff) > NEWEST_MINOR) {
		message_set(reterr,
			    "the target runs CPython %s, whose debug offsets make no sense to this "
			    "pysample, which knows " SUPPORTED_VERSIONS
			    ": look for a newer pysample",
			    version);
		return -ENOTSUP;
	}
	message_set(reterr,
		    "the debug offsets of this CPython %s contradict themselves: "
		    "a pre-release, a patched build or damaged memory",
		    version);
	return -EBADMSG;
}

/* Fill ret_build from a runtime that carries offsets. -ENOENT: it does not. */
static int load_debug_offsets(struct remote_memory *memory, remote_addr runtime_addr,
			      struct py_build *ret_build, struct message *reterr)
{
	struct debug_offsets table = {0};
	int err = debug_offsets_read(memory, runtime_addr, &table);
	char version[VERSION_MAX_BYTES];

	if (!err && (table.version_hex >> 16 < 0x030d || table.version_hex >> 24 != 3)) {
		version_format(table.version_hex, version);
		message_set(reterr,
			    "the target runs CPython %s; this pysample knows " SUPPORTED_VERSIONS,
			    version);
		return -ENOTSUP;
	}
	if (!err)
		err = debug_offsets_match(memory, runtime_addr, &table, ret_build);
	if (err == -EBADMSG)
		err = explain_contradiction(table.version_hex, reterr);
	return err;
}

/* Whether the target is built as the table says. -ENOTSUP with a sentence, if not. */
static int check_table(struct remote_memory *memory, remote_addr runtime_addr,
		       const struct py_build *build, struct message *reterr)
{
	enum build_live found = build_check_known(memory, runtime_addr, build);
	char version[VERSION_MAX_BYTES];

	if (found != BUILD_LIVE_CONTRADICTS && found != BUILD_LIVE_FOREIGN)
		return 0;
	version_format(build->version_hex, version);
	message_set(reterr,
		    "the target runs a CPython %s that is built in an unusual way (for "
		    "debugging, or with patches): its structs are not where they are in others",
		    version);
	return -ENOTSUP;
}

int offsets_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
		 struct py_build *ret_build, struct message *reterr)
{
	struct py_build build = {0};
	int err = load_debug_offsets(memory, runtime_addr, &build, reterr);

	if (err == -ENOENT) {
		err = offsets_of_version(version_hex, &build, reterr);
		if (!err)
			err = check_table(memory, runtime_addr, &build, reterr);
	}
	if (err)
		return err;
	*ret_build = build;
	return 0;
}
