/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs the most, out of one cut of a profile after the other: rows by function, process and
 * thread, each with its samples. Between updates old samples fade with a half-life, so that the
 * rows show what happens now and do not jump.
 */
#pragma once

#include "profile/profile.h"

enum top_by {
	TOP_BY_FUNCTION = 0,
	TOP_BY_PROCESS = 1,
	TOP_BY_THREAD = 2,
	TOP_BY_MAX_ = 3,
};

enum top_order {
	TOP_ORDER_SELF = 0,
	TOP_ORDER_TOTAL = 1,
	TOP_ORDER_NAME = 2,
	TOP_ORDER_MAX_ = 3,
};

enum top_mode {
	TOP_MODE_ALL = 0,
	TOP_MODE_USER = 1,   /* functions of programs; of processes what they ran themselves */
	TOP_MODE_KERNEL = 2, /* the kernel's; of processes what it did for them */
	TOP_MODE_MAX_ = 3,
};

enum { TOP_HALF_LIFE_S = 3 };

struct top_row {
	uint32_t name;	     /* strtab of the model */
	uint32_t object;     /* strtab: a function's file, a script's with its line; "" for
				the kernel's and unnamed ones */
	int32_t pid, tid;    /* of processes and threads */
	bool kernel;	     /* a kernel function */
	double self;	     /* samples in which it ran itself; of processes: all of theirs */
	double total;	     /* in which it or something that it called ran */
	double kernel_total; /* of processes and threads: those that the kernel ran for them */
	uint64_t counted;    /* the sample that `total` has counted already */
};

struct top_rows {
	VEC(struct top_row) rows;
	struct map by_key;
};

struct top_model {
	struct strtab strings;
	struct top_rows by[TOP_BY_MAX_];
	double samples;	     /* in all rows, faded */
	double seconds;	     /* in which they came, faded as they are; 0: not known */
	double busy;	     /* of all CPUs, in these seconds */
	double own;	     /* of that: with sonde itself */
	uint64_t nr_counted; /* numbers samples over all updates */
};

int top_model_init(struct top_model *m);
void top_model_fini(struct top_model *m);
/*
 * Adds the profile's cut. The last update was `seconds` ago (0: nothing fades); so many CPUs were
 * busy since with what is sampled, whether its samples are here by now, or lost; `own` of them with
 * sonde itself. 0 or -ENOMEM.
 */
int top_model_update(struct top_model *m, const struct profile *p, double seconds, double cpus,
		     double own);
/* How many CPUs all that is sampled kept busy; 0: not known. */
double top_model_busy(const struct top_model *m);
/* Of these, those that sonde itself did. */
double top_model_own(const struct top_model *m);
/* How many CPUs `samples` of the model's kept busy: their part of that. */
double top_model_cpus(const struct top_model *m, double samples);
/* Begins anew, with no rows. */
void top_model_reset(struct top_model *m);

struct top_view {
	enum top_by by;
	enum top_order order;
	enum top_mode mode;
	const char *filter; /* part of a name or object, whatever the case; "" or NULL: all */
};

/* What a row counts for in this view. */
double top_row_self(const struct top_row *row, const struct top_view *view);
double top_row_total(const struct top_row *row, const struct top_view *view);
/* What the rows are sorted by: `total`, else `self`. */
double top_row_main(const struct top_row *row, const struct top_view *view);
/*
 * The rows to show, in order, the caller's to free (the array, not the rows: they live until the
 * next update). Equal ones are in the order of their names. 0 or -ENOMEM.
 */
int top_model_select(const struct top_model *m, const struct top_view *view,
		     const struct top_row ***ret, size_t *ret_nr);
