/* SPDX-License-Identifier: MIT */
/* Bits of tp_flags. Source: CPython Include/object.h. */
#pragma once

#define TYPE_INLINE_VALUES (1ull << 2) /* 3.13+: its instances have their values in themselves */
#define TYPE_MANAGED_DICT  (1ull << 4) /* 3.11+: they have their dict in front of themselves */
#define TYPE_HEAP	   (1ull << 9) /* made at run time, by a class statement or an extension */
#define TYPE_READY	   (1ull << 12)

/* Of which builtin type it is, or is derived from: one of these at most. */
#define TYPE_IS_INT	  (1ull << 24)
#define TYPE_IS_LIST	  (1ull << 25)
#define TYPE_IS_TUPLE	  (1ull << 26)
#define TYPE_IS_BYTES	  (1ull << 27)
#define TYPE_IS_STR	  (1ull << 28)
#define TYPE_IS_DICT	  (1ull << 29)
#define TYPE_IS_EXCEPTION (1ull << 30)
#define TYPE_IS_TYPE	  (1ull << 31) /* its instances are types */
#define TYPE_IS_MASK	  (0xffull << 24)
