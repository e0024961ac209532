// SPDX-License-Identifier: Apache-2.0
/*
 * hashes SECONDS NAME: has the kernel make hashes of that kind all the time, which a module of it
 * may do, and is called NAME. Nothing happens where there is no such kind.
 */
#include "workload.h"

#include <linux/if_alg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static char data[16 << 10], digest[64];

KNOWN void hashes(int operation)
{
	if (send(operation, data, sizeof(data), 0) < 0 ||
	    read(operation, digest, sizeof(digest)) <= 0)
		_exit(1);
	sink++;
}

int main(int argc, char **argv)
{
	struct sockaddr_alg address = { .salg_family = AF_ALG, .salg_type = "hash" };
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), operation;

	if (argc != 3)
		return 2;
	work_init(argc, argv);
	prctl(PR_SET_NAME, argv[2]);
	snprintf((char *)address.salg_name, sizeof(address.salg_name), "%s", argv[2]);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return 1;
	operation = accept(fd, NULL, 0);
	while (work_left())
		hashes(operation);
	return 0;
}
