/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes room in a profile whose stacks are all of this cut: those that were hardly ever met lose
 * their innermost frames, and become one with their like. All samples stay, and the outermost
 * frames of each, as far in as enough others share them. The note PROFILE_NOT_KEPT stands for what
 * is missing.
 */
#pragma once

#include "profile/collect.h"

/*
 * About a quarter of what stacks take goes. Users share what stays, and a user's programs his
 * share: one whose stacks take little keeps them all. 0, and *ret is the caller's, *ret_samples the
 * number of samples of type 0 that were complete until now; -ENOMEM and nothing is changed. It
 * takes room for what is kept.
 */
int profile_prune(struct profile *p, struct profile_collected *ret, uint64_t *ret_samples);
