//go:build cgo
// +build cgo

// SPDX-License-Identifier: Apache-2.0

package main

/*
void back(int);

static volatile unsigned long spun;

__attribute__((noinline)) static void in_c(int which)
{
	back(which);
	spun++;
}

__attribute__((noinline)) static void c_leaf(void)
{
	for (;;)
		spun++;
}
*/
import "C"

// The cases that go through C have no chain of C functions: the runtime knows nothing of these.
//
//export back
func back(which C.int) {
	if which == 0 {
		outer("go-callback")
	}
	tell("go-c-leaf")
	C.c_leaf()
}

var more = map[string]func(string){
	"go-callback": func(c string) { C.in_c(0) },
	"go-c-leaf":   func(c string) { C.in_c(1) },
}
