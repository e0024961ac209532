// SPDX-License-Identifier: Apache-2.0

// Says that it is there, waits until standard input ends, then works (unknown_test.py).
package main

import (
	"fmt"
	"io"
	"os"
)

//go:noinline
func leaf(x int) int {
	for i := 0; i < 10000; i++ {
		x = (x*3 + i) % 1000003
	}
	return x
}

//go:noinline
func middle(n int) int { return leaf(n) + 1 }

func main() {
	fmt.Printf("{\"ready\": %d}\n", os.Getpid())
	io.Copy(io.Discard, os.Stdin)
	for n := 0; ; {
		n = middle(n)
	}
}
