/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
#include "runtime/hotspot/hotspot_walk.bpf.h"
enum { HOTSPOT_METHOD = 12 };
__noinline int WALK_NAME(hotspot_look_compiled)(void)
{
	return LOOK_FRAME;
}
__noinline int WALK_NAME(hotspot_look_interpreter)(void)
{
	return LOOK_FRAME;
}
__noinline int WALK_NAME(hotspot_look_stub)(void)
{
	return LOOK_FAILED;
}
__noinline int WALK_NAME(hotspot_called)(__u64 ra)
{
	return ra ? CALLED_SOMETHING : CALLED_NOT;
}
