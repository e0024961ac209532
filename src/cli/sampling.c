// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling.h"

struct recorder_options sampling_recorder_options(const struct sampling_arguments *arguments)
{
	return (struct recorder_options){
		.frequency_hz = arguments->frequency_hz,
		.memory_limit = arguments->memory_limit,
		.max_frames = arguments->max_frames,
		.no_kernel = arguments->no_kernel,
		.idle = arguments->idle,
		.kernel_frames = KERNEL_FRAMES_ROWS,
		.symbolizer = { .no_inlines = arguments->no_inlines,
				.no_file_names = arguments->no_file_names,
				.runtimes = arguments->runtimes,
				.builder = names_builder },
		.table_builder = names_table_builder,
		.file_copier = names_file_copier,
		.memory_reader = names_memory_reader,
		.walker_loader = names_walker_loader,
	};
}
