/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs that a JVM made for itself: intrinsics like "StubRoutines::jint_disjoint_arraycopy",
 * and where each begins and ends. HotSpot keeps a list of them (runtime/stubCodeGenerator.hpp,
 * class StubCodeDesc), which no table of vmStructs leads to: it is found in the data of libjvm as
 * what looks like it, and there is but one thing that does.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

struct hotspot_stubs;

/* `vm` must outlive it. NULL: no memory. Nothing is read before somebody asks. */
struct hotspot_stubs *hotspot_stubs_new(const struct hotspot_vm *vm);
void hotspot_stubs_free(struct hotspot_stubs *s);

/* The stub that has `pc`, as "group::name"; NULL: none, or it is not known. Valid until the next
 * call. */
const char *hotspot_stubs_find(struct hotspot_stubs *s, uint64_t pc);
