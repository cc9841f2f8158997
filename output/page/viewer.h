/* SPDX-License-Identifier: MIT */
/*
 * The page of the interactive flame graph, built from output/assets at build time. The README.md
 * there describes how an artefact is put together.
 */
#pragma once

#include <stddef.h>

/* Styles, markup and script, gzipped. */
extern const unsigned char viewer_page[];
extern const size_t viewer_page_bytes;

/*
 * The script that unpacks and starts the page once page and data are loaded. ASCII without "</",
 * so that it can be inside a <script>.
 */
extern const char viewer_loader[];
