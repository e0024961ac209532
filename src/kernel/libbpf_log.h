/* SPDX-License-Identifier: Apache-2.0 */
/* What libbpf has to say is of use when debugging only: our own messages say what failed. */
#pragma once

/* Sends libbpf's messages to log_debug() from now on. */
void libbpf_log_to_debug(void);
/* Logs what it said elsewhere: the first line, and the last ones. */
void libbpf_log_words(const char *text);
