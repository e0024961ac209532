// SPDX-License-Identifier: Apache-2.0
#include "coredump/core_open.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of <elf.h> as far as Linux writes cores there. */
static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_386:
		return "i386";
	case EM_ARM:
		return "32-bit ARM";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "POWER";
	case EM_S390:
		return "s390x";
	case EM_MIPS:
		return "MIPS";
	case EM_LOONGARCH:
		return "LoongArch";
	case EM_SPARCV9:
		return "SPARC";
	}
	return NULL;
}

static const struct {
	const char *name, *command; /* that unpacks FILE */
	const char *magic;
	size_t len;
} packers[] = {
	{ "zstd", "zstd -d", "\x28\xb5\x2f\xfd", 4 },
	{ "xz", "xz -dk",
	  "\xfd"
	  "7zXZ\0",
	  6 },
	{ "lz4", "lz4 -d", "\x04\x22\x4d\x18", 4 },
	{ "gzip", "gunzip -k", "\x1f\x8b", 2 },
	{ "bzip2", "bunzip2 -k", "BZh", 3 },
};

/* What an ELF file of another kind is. `r`: of elf_file_open_fd(). */
static int refuse_elf(const char *path, const uint8_t *head, size_t size, int r)
{
	uint16_t type = ET_NONE, machine = EM_NONE;
	const char *name;

	if (size >= EI_NIDENT + 4 && head[EI_DATA] == ELFDATA2LSB) {
		memcpy(&type, head + EI_NIDENT, sizeof(type));
		memcpy(&machine, head + EI_NIDENT + 2, sizeof(machine));
	} else if (size >= EI_NIDENT + 4) {
		type = (uint16_t)(head[EI_NIDENT] << 8 | head[EI_NIDENT + 1]);
		machine = (uint16_t)(head[EI_NIDENT + 2] << 8 | head[EI_NIDENT + 3]);
	}
	if (type != ET_NONE && type != ET_CORE) {
		log_error("%s is an ELF file, but no core: %s", path,
			  type == ET_REL    ? "an object file"
			  : type == ET_EXEC ? "an executable"
			  : type == ET_DYN  ? "an executable or a library"
					    : "of an unknown type");
		return -ENOEXEC;
	}
	if (type == ET_NONE && size < EI_NIDENT + 4) {
		log_error("%s is cut off after %zu bytes: nothing can be told from it", path, size);
		return -ENODATA;
	}
	if (r == -ENOTSUP && head[EI_CLASS] == ELFCLASS32) {
		name = machine_name(machine);
		log_error("%s is a 32-bit core%s%s%s: only those of x86-64 and aarch64 can be read",
			  path, name ? " (" : "", name ? name : "", name ? ")" : "");
		return r;
	}
	if (r == -ENOTSUP) {
		name = machine_name(machine);
		log_error("%s is a core of another machine (%s): only those of x86-64 and aarch64 "
			  "can be read",
			  path, name ? name : "unknown");
		return r;
	}
	log_error("%s is a core, but cut off or damaged: it has not even a thread's registers",
		  path);
	return r;
}

/* What the file is, if it is no core that can be read. */
static int refuse(const char *path, int fd, int r)
{
	uint8_t head[64];
	ssize_t size = pread(fd, head, sizeof(head), 0);

	if (r != -ENOEXEC && r != -ENOTSUP && r != -ENODATA)
		return log_err(r, "cannot read %s", path);
	if (size < 0)
		return log_err(-errno, "cannot read %s", path);
	if (!size) {
		log_error("%s is empty: the disk was full, or the core size limit too small "
			  "(ulimit -c)",
			  path);
		return -ENODATA;
	}
	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++) {
		if ((size_t)size >= packers[i].len &&
		    !memcmp(head, packers[i].magic, packers[i].len)) {
			log_error("%s is compressed (%s): unpack it first, with '%s %s'", path,
				  packers[i].name, packers[i].command, path);
			return -ENOTSUP;
		}
	}
	if (size < SELFMAG || memcmp(head, ELFMAG, SELFMAG)) {
		log_error("%s is no core file", path);
		return -ENOEXEC;
	}
	return refuse_elf(path, head, (size_t)size, r);
}

int core_open(const char *path, struct elf_file **ret_elf, struct elf_core **ret_core)
{
	/* Not blocking: it may be a FIFO. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct stat st;
	int copy, r;

	if (fd < 0 && !strcmp(path, "-")) {
		log_error("a core can't be read from standard input, since it is not read in one "
			  "go: give a FILE");
		return -EINVAL;
	}
	if (fd < 0 || fstat(fd, &st))
		return log_err(-errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode)) {
		log_error("%s is no regular file%s: a core must be one, since it is not read in "
			  "one go",
			  path, S_ISFIFO(st.st_mode) ? ", but a pipe" : "");
		return -EINVAL;
	}
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return log_err(-errno, "cannot open %s", path);
	r = elf_file_open_fd(copy, &elf);
	if (r)
		close(copy);
	else
		r = elf_core_read(elf, ret_core);
	if (r)
		return refuse(path, fd, r);
	*ret_elf = TAKE_PTR(elf);
	return 0;
}
