/* SPDX-License-Identifier: MIT */
#include "output/page/flamegraph_html.h"

#include <errno.h>

#include "output/encoding/base91.h"
#include "output/encoding/gzip.h"
#include "output/page/page_data.h"
#include "output/page/page_table.h"
#include "output/page/viewer.h"
#include "output/text/xml.h"

/* Nothing can be loaded, even if a name smuggles markup in. */
#define CONTENT_SECURITY_POLICY                                                       \
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " \
	"img-src data: blob:"

static int put(FILE *out, const char *string)
{
	errno = EIO; /* in case the stream fails without setting it */
	return fputs(string, out) < 0 ? -errno : 0;
}

/* Write everything before the table. */
static int head_write(const struct artefact *artefact, FILE *out)
{
	const char *command_line = artefact->runs[0].info.target.command_line;
	struct text text = {0};
	int err;

	text_puts(&text, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
			 "<meta http-equiv=\"Content-Security-Policy\" "
			 "content=\"" CONTENT_SECURITY_POLICY "\">\n"
			 "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	if (command_line) {
		xml_puts(&text, command_line);
		text_puts(&text, " - ");
	}
	text_puts(&text,
		  "pysample</title>\n<body>\n<noscript>\n<p>This flame graph needs JavaScript. "
		  "The functions with the most self time:\n");
	err = text_write(&text, out);
	text_done(&text);
	return err;
}

/* Returns the first error: an error on closing a stream is the cause of the other. */
static int first_error(int err, int closing)
{
	return closing ? closing : err;
}

static int viewer_write(FILE *out)
{
	FILE *base91;
	int err = base91_open(out, &base91);

	if (err)
		return err;
	(void)fwrite(viewer_page, 1, viewer_page_bytes, base91);
	return base91_close(base91);
}

static int data_write(const struct artefact *artefact, FILE *out)
{
	FILE *base91;
	FILE *gzip;
	int err = base91_open(out, &base91);

	if (err)
		return err;
	err = gzip_open(base91, &gzip);
	if (!err) {
		err = page_data_write(artefact, gzip);
		err = first_error(err, gzip_close(gzip));
	}
	return first_error(err, base91_close(base91));
}

int flamegraph_html_write(const struct artefact *artefact, FILE *out)
{
	int err = head_write(artefact, out);

	if (!err)
		err = page_table_write(artefact->profile, out);
	if (!err)
		err = put(out, "</noscript>\n<script type=\"text/plain\" id=\"pysample-page\">");
	if (!err)
		err = viewer_write(out);
	if (!err)
		err = put(out, "</script>\n<script type=\"text/plain\" id=\"pysample-data\">");
	if (!err)
		err = data_write(artefact, out);
	if (!err)
		err = put(out, "</script>\n<script>");
	if (!err)
		err = put(out, viewer_loader);
	if (!err)
		err = put(out, "</script>\n");
	errno = EIO;
	return !err && fflush(out) ? -errno : err;
}
