/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of folded text, for folded.c; as struct export_ops has them. */
#pragma once

#include "profile/profile.h"

int folded_text_read(const void *data, size_t size, struct profile *ret, char ret_problem[200]);
bool folded_text_recognise(const void *data, size_t size);
