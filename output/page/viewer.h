/* SPDX-License-Identifier: MIT */
/*
 * The page of the interactive flame graph, made of output/assets at build time: their
 * README.md says how an artefact is put together.
 */
#pragma once

#include <stddef.h>

/* Its styles, markup and script, gzipped. */
extern const unsigned char viewer_page[];
extern const size_t viewer_page_bytes;

/*
 * The script that unpacks and starts it, when the page and the data are there. ASCII without
 * "</", so that it may stand in a <script>.
 */
extern const char viewer_loader[];
