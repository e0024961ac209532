// SPDX-License-Identifier: Apache-2.0
#include "record/metadata.h"

#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

/*
 * In a value of by_pid beside the process's number: it has another image; events were lost since it
 * was looked at, so that it may be another process; when it began, in ticks, the low bits of that.
 */
#define METADATA_NEW_IMAGE   (UINT64_C(1) << 32)
#define METADATA_DOUBTED     (UINT64_C(1) << 33)
#define METADATA_START(time) ((uint64_t)(time) << 34)

void metadata_init(struct metadata *c, struct profile *profile)
{
	*c = (struct metadata){ .profile = profile };
}

void metadata_fini(struct metadata *c)
{
	map_fini(&c->by_pid);
	map_fini(&c->by_tid);
	vec_free(&c->readings);
	user_names_fini(&c->users);
}

/* As OTLP and Go call it. */
static const char *arch_name(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	return strcmp(machine, "aarch64") ? machine : "arm64";
}

/* An id that the machine keeps over restarts, if it was given one. */
static int set_machine_id(struct profile *p)
{
	_cleanup_free_ char *id = NULL;
	size_t size;

	if (read_file_at(AT_FDCWD, "/etc/machine-id", 128, &id, &size))
		return 0;
	id[strcspn(id, "\n")] = '\0';
	return strspn(id, "0123456789abcdef") == 32 && !id[32] ? profile_string(p, id, &p->host.id)
							       : 0;
}

int metadata_host(struct profile *profile)
{
	struct profile_host *host = &profile->host;
	struct utsname u;
	char os[160];
	int r;

	uname(&u);
	snprintf(os, sizeof(os), "%s %s", u.sysname, u.release);
	r = profile_string(profile, u.nodename, &host->name);
	if (!r)
		r = profile_string(profile, arch_name(u.machine), &host->arch);
	if (!r)
		r = profile_string(profile, os, &host->os);
	return r ? r : set_machine_id(profile);
}

/* NULL: it was never read, or before there was memory for that. */
static struct metadata_reading *reading_of(struct metadata *c, uint32_t process)
{
	return process < c->readings.nr ? &c->readings.items[process] : NULL;
}

static struct metadata_reading *add_reading(struct metadata *c, uint32_t process)
{
	while (c->readings.nr <= process)
		if (vec_push(&c->readings, (struct metadata_reading){ 0 }))
			return NULL;
	return &c->readings.items[process];
}

/* What an exec may change is not known: what was read is of the program that came then. */
static void forget_program(struct metadata *c, uint32_t process)
{
	struct profile_process *p = &c->profile->processes.items[process];
	const struct metadata_reading *reading = reading_of(c, process);

	p->name = reading ? reading->comm : 0;
	p->path = p->command = p->owner = p->service = p->attributes = p->variables = 0;
	p->uid = p->saved_uid = UINT32_MAX;
}

/* The kernel tells of an exec only when there is a new executable already: then it is nobody's. */
static void note_reading(struct metadata *c, uint32_t process, uint64_t begin_ns,
			 const struct proc_identity *id)
{
	struct metadata_reading *reading = c->each_program ? add_reading(c, process) : NULL;

	if (!reading)
		return;
	reading->begin_ns = begin_ns;
	reading->end_ns = c->read_ns = now_ns();
	reading->is_unread = id->is_executing;
	if (id->is_executing)
		forget_program(c, process);
}

static void hold_reading(struct metadata *c, uint32_t process)
{
	struct metadata_reading *reading = add_reading(c, process);

	if (reading)
		reading->is_unread = true;
}

/* Writes what /proc says; a process that is gone stays without. Its METADATA_START(), 0: gone. */
static uint64_t describe(struct metadata *c, uint32_t process)
{
	struct profile *p = c->profile;
	struct profile_process *known = &p->processes.items[process];
	uint64_t begin_ns = c->each_program ? now_ns() : 0;
	struct proc_identity id;
	const char *owner = "";

	if (c->is_held) {
		hold_reading(c, process);
		return 0;
	}
	if (proc_identity_read(known->pid, c->variables, &id))
		return 0;
	known->parent_pid = id.parent_pid;
	known->vpid = id.vpid;
	known->group_pid = id.group_pid;
	known->session_pid = id.session_pid;
	known->has_terminal = id.has_terminal;
	known->uid = id.uid;
	known->real_uid = id.real_uid;
	known->saved_uid = id.saved_uid;
	known->start_ns = id.start_ns;
	if (id.in_our_root)
		owner = user_names_find(&c->users, id.uid);
	if (profile_string(p, id.path, &known->path) ||
	    profile_string(p, id.command, &known->command) ||
	    profile_string(p, owner, &known->owner) || profile_string(p, id.comm, &known->name) ||
	    profile_string(p, id.container, &known->container) ||
	    profile_string(p, id.pod, &known->pod) ||
	    profile_string(p, id.cgroup, &known->cgroup) ||
	    profile_string(p, id.service, &known->service) ||
	    profile_string(p, id.attributes, &known->attributes) ||
	    profile_string(p, id.variables, &known->variables))
		log_debug("process %d is described in part: out of memory", known->pid);
	note_reading(c, process, begin_ns, &id);
	return METADATA_START(id.start_ticks);
}

/*
 * Is the process of that number the one that was known by it, after events were lost? Of one that
 * is gone only its main thread's name tells, by a sample.
 */
static bool is_same_process(const struct metadata *c, uint64_t known, int32_t pid, int32_t tid,
			    const char *comm)
{
	const struct profile_process *p = &c->profile->processes.items[(uint32_t)known];
	struct proc_stat stat;

	if (proc_stat_read(pid, &stat))
		return pid != tid || !strcmp(strtab_get(&c->profile->strings, p->name), comm);
	return METADATA_START(stat.start_time) == known >> 34 << 34;
}

/* Among what was lost may have been its end, with another one's beginning, or an exec. */
static void look_again(struct metadata *c, uint64_t *known, int32_t pid, int32_t tid,
		       const char *comm)
{
	const struct profile_process *p = &c->profile->processes.items[(uint32_t)*known];

	if (!is_same_process(c, *known, pid, tid, comm)) {
		map_del(&c->by_pid, (uint32_t)pid);
		return;
	}
	*known &= ~METADATA_DOUBTED;
	if (pid == tid && strcmp(strtab_get(&c->profile->strings, p->name), comm))
		*known |= METADATA_NEW_IMAGE;
}

/* Its main thread's name at the sample, if nobody knows a better one in the end. */
static void keep_comm(struct metadata *c, uint32_t process, const char *comm)
{
	struct metadata_reading *reading = add_reading(c, process);

	if (reading && !reading->comm && profile_string(c->profile, comm, &reading->comm))
		log_debug("a process has no name: out of memory");
}

static bool is_called(const struct metadata *c, uint32_t string, const char *comm)
{
	return !strcmp(strtab_get(&c->profile->strings, string), comm);
}

/* Is there that thread? No other one than the main thread is left by an exec. */
static bool is_thread(int32_t pid, int32_t tid, const char *comm)
{
	_cleanup_free_ char *name = NULL;
	char path[48];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	if (read_file_at(AT_FDCWD, path, 64, &name, &size))
		return false;
	name[strcspn(name, "\n")] = '\0';
	return !strcmp(name, comm);
}

/* describe() for a sample of that thread, which may have been before an exec that was not heard of.
 */
static uint64_t describe_for(struct metadata *c, uint32_t process, int32_t tid, const char *comm)
{
	uint64_t start = describe(c, process);
	const struct profile_process *p = &c->profile->processes.items[process];

	if (start && c->each_program && c->in_doubt &&
	    !(tid == p->pid ? is_called(c, p->name, comm) : is_thread(p->pid, tid, comm)))
		forget_program(c, process);
	return start;
}

static int add_process(struct metadata *c, int32_t pid, int32_t tid, const char *comm,
		       uint32_t *ret)
{
	struct profile_process *added;
	uint64_t start;
	int r = profile_add_process(c->profile, pid, ++c->last_key, ret);

	if (r)
		return r;
	start = describe_for(c, *ret, tid, comm);
	r = map_put(&c->by_pid, (uint32_t)pid, start | *ret);
	if (r)
		return r;
	added = &c->profile->processes.items[*ret];
	return added->name ? 0 : profile_string(c->profile, comm, &added->name);
}

static bool is_unread(struct metadata *c, uint32_t process)
{
	const struct metadata_reading *reading = reading_of(c, process);

	return reading && reading->is_unread;
}

static int find_process(struct metadata *c, int32_t pid, int32_t tid, const char *comm,
			uint32_t *ret)
{
	uint64_t *found = map_get(&c->by_pid, (uint32_t)pid), start;

	if (found && *found & METADATA_DOUBTED) {
		look_again(c, found, pid, tid, comm);
		found = map_get(&c->by_pid, (uint32_t)pid);
	}
	if (found && c->each_program && c->in_doubt && pid == tid &&
	    !is_called(c, c->profile->processes.items[(uint32_t)*found].name, comm))
		*found |= METADATA_NEW_IMAGE;
	if (found && *found & METADATA_NEW_IMAGE && c->each_program) {
		c->profile->processes.items[(uint32_t)*found].was_replaced = true;
		return add_process(c, pid, tid, comm, ret);
	}
	if (!found)
		return add_process(c, pid, tid, comm, ret);
	*ret = (uint32_t)*found;
	if (*found & METADATA_NEW_IMAGE || is_unread(c, *ret)) {
		*found &= ~METADATA_NEW_IMAGE;
		start = describe_for(c, *ret, tid, comm);
		if (start)
			*found = (*found & (METADATA_START(1) - 1)) | start;
	}
	return 0;
}

/*
 * A thread that the profile did not have. One that only got another name began with it, which
 * nobody heard of: its start stays 0. Main threads live as long as their process.
 */
static void describe_thread(struct metadata *c, uint32_t thread)
{
	struct profile_thread *t = &c->profile->threads.items[thread], *before;
	uint64_t *found = map_get(&c->by_tid, (uint32_t)t->tid);

	if (t->tid == c->profile->processes.items[t->process].pid)
		return;
	before = found ? &c->profile->threads.items[*found] : NULL;
	if (!before || before->process != t->process || before->end_ns)
		(void)proc_start_read(t->tid, &t->start_ns);
	if (map_put(&c->by_tid, (uint32_t)t->tid, thread))
		log_debug("the end of thread %d will not be seen: out of memory", t->tid);
}

int metadata_thread(struct metadata *c, int32_t pid, int32_t tid, const char *comm, uint32_t *ret)
{
	uint32_t process;
	size_t nr = c->profile->threads.nr;
	int r = find_process(c, pid, tid, comm, &process);

	if (!r && c->each_program && pid == tid)
		keep_comm(c, process, comm);
	if (!r)
		r = profile_add_thread(c->profile, process, tid, comm, ret);
	if (!r && c->profile->threads.nr > nr)
		describe_thread(c, *ret);
	return r;
}

/* Nobody hears of when virtual threads begin and end. */
int metadata_virtual_thread(struct metadata *c, int32_t pid, int32_t tid, const char *comm,
			    const char *name, uint32_t *ret)
{
	uint32_t process;
	int r = find_process(c, pid, tid, comm, &process);

	return r ? r : profile_add_carried_thread(c->profile, process, tid, name, comm, ret);
}

/*
 * When the event happened, CLOCK_REALTIME. It has only just been, so what is between the clocks now
 * was so then: somebody may have set one since the recording began, and the other stands still
 * while the machine sleeps.
 */
static uint64_t wall_time(const struct side_event *event)
{
	return event->time_ns + wall_offset_ns();
}

static void end_thread(struct metadata *c, const struct side_event *event)
{
	uint64_t *found = map_get(&c->by_tid, (uint32_t)event->tid);
	struct profile_thread *t = found ? &c->profile->threads.items[*found] : NULL;

	/* It may be another process's by now, whose thread was never sampled. */
	if (t && c->profile->processes.items[t->process].pid == event->pid)
		t->end_ns = wall_time(event);
}

static void doubt_all(struct metadata *c)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&c->by_pid, &i)))
		slot->value |= METADATA_DOUBTED;
}

/* What was read since the last turn may be of a program whose exec was lost. */
static void forget_late_readings(struct metadata *c)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&c->by_pid, &i))) {
		const struct metadata_reading *reading = reading_of(c, (uint32_t)slot->value);
		uint32_t name = c->profile->processes.items[(uint32_t)slot->value].name;

		if (reading && reading->end_ns > c->turn_ns && reading->comm != name)
			forget_program(c, (uint32_t)slot->value);
	}
}

void metadata_begin_turn(struct metadata *c, uint64_t now, bool is_whole)
{
	/* Samples of the last one may have hidden what was executed behind them. */
	if (c->each_program && c->in_doubt)
		doubt_all(c);
	if (c->each_program && !is_whole && c->read_ns > c->turn_ns)
		forget_late_readings(c);
	c->in_doubt = !is_whole;
	c->turn_ns = now;
}

/* What was read of the process is the new program's alone. */
static bool hand_on(struct metadata *c, int32_t pid, uint64_t *known)
{
	const uint32_t before = (uint32_t)*known;
	struct profile *p = c->profile;
	struct metadata_reading *reading;
	struct profile_process process;
	uint32_t added;

	if (profile_add_process(p, pid, ++c->last_key, &added))
		return false;
	reading = add_reading(c, added);
	if (!reading)
		return false;
	process = p->processes.items[before];
	process.key = c->last_key;
	process.was_replaced = false;
	p->processes.items[added] = process;
	*reading = c->readings.items[before];
	reading->comm = 0;
	*known = (*known >> 32 << 32) | added;
	return true;
}

/* The process has executed a program. */
static void on_exec(struct metadata *c, uint64_t *known, const struct side_event *event)
{
	const uint32_t before = (uint32_t)*known;
	const struct metadata_reading *reading = reading_of(c, before);
	struct metadata_reading read = reading ? *reading : (struct metadata_reading){ 0 };
	bool is_new = false;

	if (*known & METADATA_NEW_IMAGE || !c->each_program) {
		*known |= METADATA_NEW_IMAGE;
		return;
	}
	if (read.begin_ns > event->time_ns)
		is_new = hand_on(c, event->pid, known);
	if (!is_new)
		*known |= METADATA_NEW_IMAGE;
	c->profile->processes.items[before].was_replaced = true;
	if (read.end_ns >= event->time_ns)
		forget_program(c, before);
}

void metadata_on_event(struct metadata *c, const struct side_event *event)
{
	uint64_t *found = map_get(&c->by_pid, (uint32_t)event->pid);

	if (event->type == SIDE_LOST)
		doubt_all(c);
	if (!found)
		return;
	if (event->type == SIDE_THREAD_EXIT)
		end_thread(c, event);
	else if (event->type == SIDE_EXEC)
		on_exec(c, found, event);
	else if (event->type == SIDE_EXIT)
		c->profile->processes.items[(uint32_t)*found].end_ns = wall_time(event);
	else if (event->type == SIDE_FORK)
		map_del(&c->by_pid, (uint32_t)event->pid);
}

/* `mask`: what else a value has beside the number. */
static void move_all(struct map *m, const struct profile_moves *moves, uint64_t mask)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(m, &i))) {
		uint32_t to = profile_moved(moves, (uint32_t)slot->value);

		if (to == PROFILE_GONE)
			map_del(m, slot->key);
		else
			slot->value = (slot->value & mask) | to;
	}
}

/* Out of memory: what was read is taken for read long ago. */
static void move_readings(struct metadata *c, const struct profile_collected *collected)
{
	struct metadata moved = { 0 };
	struct metadata_reading *to;

	for (uint32_t i = 0; i < c->readings.nr; i++) {
		uint32_t process = profile_moved(&collected->processes, i);

		to = process == PROFILE_GONE ? NULL : add_reading(&moved, process);
		if (!to)
			continue;
		*to = c->readings.items[i];
		to->comm = profile_moved(&collected->strings, to->comm);
		if (to->comm == PROFILE_GONE)
			to->comm = 0;
	}
	vec_free(&c->readings);
	c->readings.items = moved.readings.items;
	c->readings.nr = moved.readings.nr;
	c->readings.cap = moved.readings.cap;
}

void metadata_collected(struct metadata *c, const struct profile_collected *collected)
{
	move_readings(c, collected);
	move_all(&c->by_pid, &collected->processes, ~(uint64_t)UINT32_MAX);
	move_all(&c->by_tid, &collected->threads, 0);
}
