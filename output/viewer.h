/* SPDX-License-Identifier: MIT */
/*
 * The page of the interactive flame graph, made of output/assets at build time: their
 * README.md says how an artefact is put together. Both are ASCII and hold no "</", so they
 * may stand in a <script>.
 */
#pragma once

/* Its styles, markup and script, gzipped, in printable characters. */
extern const char viewer_blob[];

/* The script that unpacks and starts it; it runs when the blob and the data are there. */
extern const char viewer_loader[];
