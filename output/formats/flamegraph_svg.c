/* SPDX-License-Identifier: MIT */
#include "output/formats/flamegraph_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/caveats.h"
#include "output/formats/flame_colour.h"
#include "output/formats/svg_text.h"
#include "output/profile/label.h"
#include "output/profile/tree_order.h"
#include "output/profile/tree_walk.h"
#include "output/run/loss.h"
#include "output/run/stats.h"
#include "output/text/xml.h"

/* In pixels, as in flamegraph.pl. */
#define FRAME_HEIGHT 16
#define SIDE_PAD     10
#define TOP_PAD	     56 /* two title lines */
#define BOTTOM_PAD   46 /* legend and notes */

#define ROOT_LABEL "all"

/* A rectangle of the image. */
struct box {
	const char *label;	   /* unescaped; NULL: the label of the node's frame */
	uint32_t node;		   /* PROFILE_NONE if it has a label */
	uint64_t start;		   /* sum of the boxes to its left */
	struct profile_weight sum; /* of this box and all above it */
	struct profile_weight base;
	uint32_t row; /* 0 is the bottom */
};

struct svg {
	const struct artefact *artefact; /* borrowed */
	FILE *out;
	struct tree_walk walk, base_walk;
	uint64_t all, all_base;	 /* value of the full width */
	struct text text, label; /* of the current box */

	bool measures; /* first pass: compute the fields below and write nothing */
	uint32_t nr_rows;
	uint64_t nr_narrow, nr_deep; /* omitted boxes */
	double max_change;	     /* largest change of a share */
	uint64_t gone;		     /* part of the base in stacks that no longer occur */
	bool has_origin[NR_ORIGINS];
};

/*
 * Whether widths are times and not numbers of samples: comparisons are of shares of time, because
 * the sides may have other rates.
 */
static bool is_by_time(const struct svg *svg)
{
	return svg->artefact->has_base || profile_mode(svg->artefact->profile) == PROFILE_CPU;
}

/* Returns a weight in the image's unit, that of collapsed stacks but in ns. */
static uint64_t value_of(const struct svg *svg, struct profile_weight weight)
{
	return is_by_time(svg) ? weight.ns : weight.samples;
}

static double share_of(uint64_t value, uint64_t all)
{
	return all ? (double)value / (double)all : 0;
}

/* Returns the weight of all samples that a side shows. */
static struct profile_weight whole_of(const struct svg *svg, enum profile_side side)
{
	const struct profile_sums *sums = profile_sums(svg->artefact->profile, side);

	return (struct profile_weight){sums->account.nr_shown, sums->time_ns};
}

/* Returns how much larger a box's share is than in the base. */
static double change_of(const struct svg *svg, const struct box *box)
{
	return share_of(value_of(svg, box->sum), svg->all) -
	       share_of(value_of(svg, box->base), svg->all_base);
}

/* Returns the function of a box; NULL for a thread's root, and for samples without frames. */
static const struct profile_function *box_function(const struct svg *svg, const struct box *box)
{
	const struct profile *profile = svg->artefact->profile;
	uint32_t nr;
	uint32_t function;

	if (box->node == PROFILE_NONE)
		return NULL;
	function = profile_frames(profile, &nr)[svg->walk.nodes[box->node].frame].function;
	return function == PROFILE_NONE ? NULL : &profile_functions(profile, &nr)[function];
}

static enum origin box_origin(const struct svg *svg, const struct box *box)
{
	const struct profile_function *function = box_function(svg, box);

	return function ? origin_of(function) : ORIGIN_OTHER;
}

static void put_colour(struct svg *svg, const struct box *box)
{
	const struct profile_function *function = box_function(svg, box);
	struct rgb colour;

	if (svg->artefact->has_base)
		colour = flame_colour_of_change(
			svg->max_change > 0 ? change_of(svg, box) / svg->max_change : 0);
	else
		colour = flame_colour(box_origin(svg, box), function ? function->qualname : "");
	text_printf(&svg->text, "#%02x%02x%02x", colour.red, colour.green, colour.blue);
}

/* Append " (N samples, P%)" and, in a comparison, the change and whether it is new. */
static void put_numbers(struct svg *svg, const struct box *box)
{
	const struct profile *profile = svg->artefact->profile;
	uint64_t value = value_of(svg, box->sum);
	double percent = 100 * share_of(value, svg->all);
	const double points = 100 * change_of(svg, box);
	const double change = points < 0 && points > -0.005 ? 0 : points; /* no "-0.00" */

	text_puts(&svg->text, " (");
	svg_put_number(&svg->text, is_by_time(svg) ? (value + 500) / 1000 : value);
	text_printf(&svg->text, " %s, %.2f%%",
		    profile_mode_unit(is_by_time(svg) ? PROFILE_CPU : profile_mode(profile)),
		    percent);
	if (svg->artefact->has_base)
		text_printf(&svg->text, "; %+.2f%%%s", change, box->base.samples ? "" : ", new");
	text_puts(&svg->text, ")");
}

static void box_label(struct svg *svg, const struct box *box)
{
	text_clear(&svg->label);
	if (box->label)
		text_puts(&svg->label, box->label);
	else
		label_append_frame(&svg->label, svg->artefact->profile,
				   svg->walk.nodes[box->node].frame, LABEL_DISPLAY);
}

static uint32_t image_height(const struct svg *svg)
{
	return TOP_PAD + svg->nr_rows * FRAME_HEIGHT + BOTTOM_PAD;
}

static double pixels_of(const struct svg *svg, uint64_t value)
{
	return share_of(value, svg->all) * (SVG_WIDTH - 2 * SIDE_PAD);
}

static int box_write(struct svg *svg, const struct box *box)
{
	double left = SIDE_PAD + pixels_of(svg, box->start);
	double width = pixels_of(svg, value_of(svg, box->sum));
	uint32_t bottom = image_height(svg) - BOTTOM_PAD - box->row * FRAME_HEIGHT;
	int err;

	box_label(svg, box);
	text_clear(&svg->text);
	text_puts(&svg->text, "<g><title>");
	xml_append(&svg->text, text_string(&svg->label), svg->label.length);
	put_numbers(svg, box);
	text_printf(&svg->text,
		    "</title><rect x=\"%.1f\" y=\"%" PRIu32
		    "\" width=\"%.1f\" height=\"%d\" fill=\"",
		    left, bottom - FRAME_HEIGHT, width, FRAME_HEIGHT - 1);
	put_colour(svg, box);
	text_puts(&svg->text, "\"/>");
	svg_put_fitting(&svg->text, text_string(&svg->label), left + 3, bottom - 5, width - 6);
	text_puts(&svg->text, "</g>\n");
	err = text_write(&svg->text, svg->out);
	return svg->label.error ? svg->label.error : err;
}

/* Measure a box, or write it. */
static int box_visit(struct svg *svg, const struct box *box)
{
	double change = change_of(svg, box);
	bool is_narrow = pixels_of(svg, value_of(svg, box->sum)) < SVG_MIN_WIDTH;

	if (is_narrow || box->row >= SVG_MAX_ROWS) {
		if (svg->measures && value_of(svg, box->sum))
			++*(is_narrow ? &svg->nr_narrow : &svg->nr_deep);
		return 0;
	}
	if (!svg->measures)
		return box_write(svg, box);
	if (svg->nr_rows <= box->row)
		svg->nr_rows = box->row + 1;
	if (svg->max_change < (change < 0 ? -change : change))
		svg->max_change = change < 0 ? -change : change;
	svg->has_origin[box_origin(svg, box)] = true;
	return 0;
}

/* Returns the weight of a side's samples without a node. */
static struct profile_weight rootless_idle(const struct svg *svg, enum profile_side side)
{
	const struct tree_walk *walk = side == PROFILE_SHOWN ? &svg->walk : &svg->base_walk;
	struct profile_weight idle = whole_of(svg, side);

	if (walk->sums) {
		idle.samples -= walk->sums[walk->nr_nodes].samples;
		idle.ns -= walk->sums[walk->nr_nodes].ns;
	}
	return idle;
}

/* Add up the base's weight of nodes that have no width. */
static void count_gone(struct svg *svg, uint32_t node)
{
	if (svg->measures && svg->base_walk.sums && !value_of(svg, svg->walk.sums[node]))
		svg->gone +=
			value_of(svg, profile_weight(svg->artefact->profile, PROFILE_BASE, node));
}

/* Visit the box of a node and, for a thread's root, that of its samples without frames. */
static int node_visit(struct svg *svg, uint32_t node, uint32_t row, uint64_t *cursor)
{
	const struct profile_node *self = &svg->walk.nodes[node];
	struct box box = {.node = node, .start = *cursor, .sum = svg->walk.sums[node], .row = row};
	int err;

	if (svg->base_walk.sums)
		box.base = svg->base_walk.sums[node];
	count_gone(svg, node);
	err = box_visit(svg, &box);
	if (!err && !box_function(svg, &box)) {
		struct box idle = {
			.label = LABEL_NO_PYTHON_FRAMES,
			.node = PROFILE_NONE,
			.start = *cursor,
			.sum = {self->self_samples, self->self_ns},
			.base = profile_weight(svg->artefact->profile, PROFILE_BASE, node),
			.row = row + 1,
		};
		err = box_visit(svg, &idle);
	}
	*cursor += value_of(svg, (struct profile_weight){self->self_samples, self->self_ns});
	return err;
}

/* Visit all boxes, bottom to top and left to right. A node's self time is at its left. */
static int boxes_visit(struct svg *svg)
{
	struct box root = {.label = ROOT_LABEL, .node = PROFILE_NONE};
	struct box idle = {.label = LABEL_NO_PYTHON_FRAMES, .node = PROFILE_NONE, .row = 1};
	uint64_t cursor;
	uint32_t row = 0;
	int err;

	root.sum = whole_of(svg, PROFILE_SHOWN);
	root.base = whole_of(svg, PROFILE_BASE);
	idle.sum = rootless_idle(svg, PROFILE_SHOWN);
	idle.base = rootless_idle(svg, PROFILE_BASE);
	err = box_visit(svg, &root);
	if (!err)
		err = box_visit(svg, &idle);
	cursor = value_of(svg, idle.sum);
	for (struct tree_step step = TREE_STEP_BEGIN; !err && tree_walk_next(&svg->walk, &step);) {
		if (step.is_exit)
			row--;
		else
			err = node_visit(svg, step.node, ++row, &cursor);
	}
	return err;
}

static int text_out(struct svg *svg)
{
	int err = text_write(&svg->text, svg->out);

	text_clear(&svg->text);
	return err;
}

/* Append a centred title line. */
static void put_title(struct svg *svg, const char *escaped, int y, int size)
{
	text_printf(&svg->text,
		    "<text x=\"%d\" y=\"%d\" font-size=\"%d\" text-anchor=\"middle\">%s</text>\n",
		    SVG_WIDTH / 2, y, size, escaped);
}

/* Append "RATE of RATE Hz". Rates below 10 Hz have decimals. */
static void put_rates(struct text *line, const struct run *run)
{
	double achieved_hz = stats_achieved_hz(&run->stats);

	text_printf(line, " · %.*f", achieved_hz < 10 ? 2 : 0, achieved_hz);
	if (run->info.requested_hz > 0)
		text_printf(line, " of %.*f", run->info.requested_hz < 10 ? 2 : 0,
			    run->info.requested_hz);
	text_puts(line, " Hz");
}

/*
 * Append what was sampled and how well. With several runs, these are the first run's figures and
 * the sum of samples and losses.
 */
static void put_quality(struct svg *svg, struct text *line)
{
	const struct artefact *artefact = svg->artefact;
	const struct run *run = &artefact->runs[0];
	struct sampler_stats all = {0};

	for (uint32_t i = 0; i < artefact->nr_runs; i++) {
		all.samples += artefact->runs[i].stats.samples;
		for (int k = 0; k < NR_SAMPLE_LOSSES; k++)
			all.lost[k] += artefact->runs[i].stats.lost[k];
	}
	text_printf(line, "%s", profile_mode_time(profile_mode(artefact->profile)));
	if (artefact->nr_runs > 1)
		text_printf(line, " · %" PRIu32 " %s", artefact->nr_runs,
			    run->info.target.core ? "cores" : "runs");
	if (run->info.python.version) {
		text_puts(line, " · Python ");
		xml_puts(line, run->info.python.version);
	}
	if (run->info.target.core) {
		text_puts(line, " · ");
		svg_put_number(line, all.samples);
		text_printf(line, " thread%s", text_plural(all.samples));
		return;
	}
	put_rates(line, run);
	text_puts(line, " · ");
	svg_put_number(line, all.samples);
	text_printf(line, " sample%s · %.2f%% lost", text_plural(all.samples), loss_percent(&all));
}

static void put_pair(void *context, const char *name, const char *value)
{
	struct text *text = context;

	xml_puts(text, name);
	text_puts(text, ": ");
	xml_puts(text, value);
	text_puts(text, "\n");
}

/* Append everything known of the runs, for people who open the file in an editor. */
static void put_metadata(struct svg *svg)
{
	const struct artefact *artefact = svg->artefact;

	text_puts(&svg->text, "<metadata>\n");
	for (uint32_t i = 0; i < artefact->nr_runs; i++)
		run_for_each_pair(&artefact->runs[i], put_pair, &svg->text);
	for (uint32_t i = 0; i < artefact->nr_base_runs; i++) {
		text_puts(&svg->text, "\nbase:\n");
		run_for_each_pair(&artefact->base_runs[i], put_pair, &svg->text);
	}
	text_puts(&svg->text, "</metadata>\n");
}

static int head_write(struct svg *svg)
{
	const char *command_line = svg->artefact->runs[0].info.target.command_line;
	uint32_t height = image_height(svg);
	struct text line = {0};

	text_printf(&svg->text,
		    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		    "height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\" "
		    "font-family=\"Verdana,sans-serif\" font-size=\"%d\">\n",
		    SVG_WIDTH, height, SVG_WIDTH, height, SVG_FONT_SIZE);
	put_metadata(svg);
	text_printf(&svg->text, "<rect width=\"%d\" height=\"%" PRIu32 "\" fill=\"#f8f8f8\"/>\n",
		    SVG_WIDTH, height);
	svg_put_cut(&line, command_line ? command_line : "Flame graph", SVG_WIDTH - 2 * SIDE_PAD,
		    SVG_FONT_SIZE + 4);
	put_title(svg, text_string(&line), 24, SVG_FONT_SIZE + 4);
	text_clear(&line);
	put_quality(svg, &line);
	put_title(svg, text_string(&line), 42, SVG_FONT_SIZE);
	svg->text.error = svg->text.error ? svg->text.error : line.error;
	text_done(&line);
	return text_out(svg);
}

/* Append the origins that occur, with their colours. */
static void put_legend(struct svg *svg, uint32_t y)
{
	double x = SIDE_PAD;

	for (int i = 0; i < NR_ORIGINS && !svg->artefact->has_base; i++) {
		const char *name = origin_name((enum origin)i);
		struct rgb colour = flame_colour((enum origin)i, name);

		if (!svg->has_origin[i])
			continue;
		text_printf(&svg->text,
			    "<rect x=\"%.1f\" y=\"%" PRIu32 "\" width=\"10\" height=\"10\" "
			    "fill=\"#%02x%02x%02x\"/><text x=\"%.1f\" y=\"%" PRIu32
			    "\">%s</text>\n",
			    x, y - 9, colour.red, colour.green, colour.blue, x + 14, y, name);
		x += 30 + (double)strlen(name) * SVG_COLUMN_WIDTH;
	}
	if (svg->artefact->has_base)
		text_printf(&svg->text,
			    "<text x=\"%d\" y=\"%" PRIu32
			    "\">red: a larger share than in the base, "
			    "blue: a smaller one; full colour is %.2f%%</text>\n",
			    SIDE_PAD, y, 100 * svg->max_change);
}

/* Append what the image omits, and the caveats. */
static void put_notes(struct svg *svg, uint32_t y)
{
	text_printf(&svg->text, "<text x=\"%d\" y=\"%" PRIu32 "\" fill=\"#666\">", SIDE_PAD, y);
	if (!svg->all)
		text_puts(&svg->text, "no samples");
	if (svg->nr_narrow) {
		svg_put_number(&svg->text, svg->nr_narrow);
		text_printf(&svg->text, " frame%s narrower than %.1f px left out. ",
			    text_plural(svg->nr_narrow), SVG_MIN_WIDTH);
	}
	if (svg->nr_deep) {
		svg_put_number(&svg->text, svg->nr_deep);
		text_printf(&svg->text, " frame%s deeper than %d rows left out. ",
			    text_plural(svg->nr_deep), SVG_MAX_ROWS);
	}
	if (svg->gone)
		text_printf(&svg->text, "%.2f%% of the base is in stacks that no longer occur. ",
			    100 * share_of(svg->gone, svg->all_base));
	text_clear(&svg->label);
	caveats_append(&svg->label, svg->artefact);
	xml_puts(&svg->text, text_string(&svg->label));
	text_puts(&svg->text, "</text>\n");
}

static int foot_write(struct svg *svg)
{
	uint32_t height = image_height(svg);
	int err;

	text_clear(&svg->text);
	put_legend(svg, height - 26);
	put_notes(svg, height - 9);
	text_puts(&svg->text, "</svg>\n");
	err = text_out(svg);
	errno = EIO; /* in case the stream fails without setting it */
	return !err && fflush(svg->out) ? -errno : err;
}

static int svg_init(struct svg *svg, const struct artefact *artefact, FILE *out)
{
	const struct profile *profile = artefact->profile;
	int err;

	*svg = (struct svg){.artefact = artefact, .out = out};
	svg->all = value_of(svg, whole_of(svg, PROFILE_SHOWN));
	svg->all_base = value_of(svg, whole_of(svg, PROFILE_BASE));
	err = tree_walk_init(&svg->walk, profile, PROFILE_SHOWN);
	if (!err)
		err = tree_order_by_name(&svg->walk, profile);
	if (!err && artefact->has_base)
		err = tree_walk_init(&svg->base_walk, profile, PROFILE_BASE);
	return err;
}

int flamegraph_svg_write(const struct artefact *artefact, FILE *out)
{
	struct svg svg;
	int err = svg_init(&svg, artefact, out);

	svg.measures = true;
	if (!err)
		err = boxes_visit(&svg);
	svg.measures = false;
	if (!err)
		err = head_write(&svg);
	if (!err)
		err = boxes_visit(&svg);
	if (!err)
		err = foot_write(&svg);
	tree_walk_done(&svg.walk);
	tree_walk_done(&svg.base_walk);
	text_done(&svg.text);
	text_done(&svg.label);
	return err;
}
