/* SPDX-License-Identifier: MIT */
#include "output/format.h"

#include <string.h>

#include "output/formats/callgrind.h"
#include "output/formats/collapsed.h"
#include "output/formats/flamegraph_svg.h"
#include "output/formats/gecko.h"
#include "output/formats/jsonl.h"
#include "output/formats/pprof.h"
#include "output/formats/profile_json.h"
#include "output/formats/speedscope.h"
#include "output/page/flamegraph_html.h"
#include "output/summary/summary.h"

/* Suffixes of several formats may fit one name, as ".json.gz" and ".gz"; the longest wins. */
static const struct format formats[] = {
	{
		.name = "collapsed",
		.suffixes = {".collapsed", ".folded", ".txt"},
		.summary = "a line per stack, for flamegraph.pl, inferno, speedscope",
		.compares = true,
		.write = collapsed_write,
	},
	{
		.name = "recording",
		.suffixes = {".pysample"},
		.needs_time = true,
		.summary = "every sample, for pysample report",
	},
	{
		.name = "speedscope",
		.suffixes = {".speedscope.json"},
		.summary = "stacks by time, a thread at a time, for speedscope.app",
		.keep_samples = true,
		.needs_time = true,
		.write = speedscope_write,
	},
	{
		.name = "pprof",
		.suffixes = {".pb.gz", ".pprof"},
		.summary = "protobuf, for go tool pprof, Pyroscope, Parca",
		.by_line = true,
		.keep_samples =
			true, /* cheaper than a root for each thread, which is also limited */
		.write = pprof_write,
	},
	{
		.name = "gecko",
		.suffixes = {".json.gz", ".gecko.json.gz"},
		.summary = "threads by time, for profiler.firefox.com and Perfetto",
		.by_line = true,
		.keep_samples = true,
		.needs_time = true,
		.write = gecko_write,
	},
	{
		.name = "callgrind",
		.suffixes = {".callgrind"},
		.prefix = "callgrind.out.",
		.summary = "for KCachegrind and callgrind_annotate",
		.by_line = true,
		.write = callgrind_write,
	},
	{
		.name = "jsonl",
		.suffixes = {".jsonl"},
		.summary = "a line per sample and stack, for DuckDB, ClickHouse, jq",
		.by_line = true,
		.keep_samples = true,
		.write = jsonl_write,
	},
	{
		.name = "json",
		.suffixes = {".profile.json"},
		.summary = "hot functions, their callers and lines, and the tree, for programs",
		.by_line = true,
		.compares = true,
		.write = profile_json_write,
	},
	{
		.name = "flamegraph",
		.suffixes = {".html", ".htm"},
		.summary = "an interactive flame graph in one file, for a browser",
		.by_line = true,
		.keep_samples = true,
		.compares = true,
		.write = flamegraph_html_write,
	},
	{
		.name = "svg",
		.suffixes = {".svg"},
		.summary = "a static flame graph, for mail and CI",
		.compares = true,
		.write = flamegraph_svg_write,
	},
	{
		.name = "summary",
		.suffixes = {".summary"},
		.summary = "a table of functions",
		.compares = true,
		.write = summary_write,
	},
};

const struct format *format_list(size_t *ret_nr)
{
	*ret_nr = sizeof(formats) / sizeof(*formats);
	return formats;
}

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (strcmp(name, formats[i].name) == 0)
			return &formats[i];
	return NULL;
}

/* Returns the length of suffix if name ends with it and is longer, else 0. */
static size_t suffix_length(const char *name, const char *suffix)
{
	size_t name_length = strlen(name);
	size_t length = strlen(suffix);

	if (length >= name_length || strcmp(name + name_length - length, suffix) != 0)
		return 0;
	return length;
}

/* Returns the format whose files have this prefix, or NULL. */
static const struct format *format_of_prefix(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		const char *prefix = formats[i].prefix;

		if (prefix && strncmp(name, prefix, strlen(prefix)) == 0)
			return &formats[i];
	}
	return NULL;
}

const struct format *format_of_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const struct format *best = NULL;
	size_t best_length = 0;

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		for (size_t k = 0; k < FORMAT_MAX_SUFFIXES && formats[i].suffixes[k]; k++) {
			size_t length = suffix_length(name, formats[i].suffixes[k]);

			if (length > best_length) {
				best_length = length;
				best = &formats[i];
			}
		}
	return best ? best : format_of_prefix(name);
}
