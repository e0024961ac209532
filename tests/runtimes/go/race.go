//go:build race
// +build race

// SPDX-License-Identifier: Apache-2.0

package main

var raced [16]uint64

// Each of its reads and writes calls the race detector, which is C, on the thread's own stack.
//
//go:noinline
func racing(comm string) {
	tell(comm)
	for n := 0; ; n++ {
		raced[n&15]++
	}
}

func init() {
	more["go-race"] = func(c string) { racing(c) }
}
