/* SPDX-License-Identifier: Apache-2.0 */
/* What only the start of a program that runs for long has read of its files. */
#pragma once

/*
 * Pages of our program's and its libraries' code, constants and symbols are resident no longer, and
 * come back (from the page cache, in general) as they are read again: relocation alone has read
 * most of them once, and what libraries do when they are loaded, such as to test their ciphers, has
 * run. Of code not what who debugs or probes us has written into. (Who does so in the very
 * microseconds between a look at 64 pages and their end has to do it once more.)
 */
void start_pages_drop(void);
