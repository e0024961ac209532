/* SPDX-License-Identifier: Apache-2.0 */
/* What only the start of a program that runs for long has read of its files. */
#pragma once

/*
 * Pages of our program's and its libraries' constants and symbols are resident no longer, and come
 * back (from the page cache, in general) as they are read again: relocation alone has read most of
 * them once. Not code: who debugs or probes us has written there.
 */
void start_pages_drop(void);
