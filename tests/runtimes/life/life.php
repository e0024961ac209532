<?php
/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a process (life_test.py): `begun` works in it, then `forked` in a child, then it executes itself, where
 * `executed` works.
 */
function cpu()
{
    $usage = getrusage();
    return $usage["ru_utime.tv_sec"] + $usage["ru_utime.tv_usec"] / 1e6;
}

function spin()
{
    for ($end = cpu() + (float)getenv("SECONDS"); cpu() < $end;)
        for ($i = 0; $i < 1000; $i++);
    return 1;
}

function php_begun() { return spin() + 1; }
function php_forked() { return spin() + 2; }
function php_executed() { return spin() + 3; }

function php_life($phase)
{
    if ($phase === "executed")
        return php_executed() + 1;
    php_begun();
    $pid = pcntl_fork();
    if ($pid === 0) {
        php_forked();
        exit(0);
    }
    pcntl_waitpid($pid, $status);
    pcntl_exec(PHP_BINARY, [__FILE__, "executed"]);
}

php_life($argv[1] ?? "begun");
