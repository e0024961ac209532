// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
)

// Goroutines whose stacks grow: each begins with a small one, which is copied to a larger one over and
// over while it descends. Argument "grow".

//go:noinline
func descend(n int) byte {
	var room [1000]byte
	room[n%1000] = byte(n)
	if n > 0 {
		room[n%999] += descend(n - 1)
	}
	return room[spun%1000]
}

//go:noinline
func grown(done chan bool) {
	spun += uint64(descend(100))
	done <- true
}

func grow() {
	fmt.Printf("{\"ready\": %d}\n", os.Getpid())
	for {
		done := make(chan bool)
		go grown(done)
		<-done
	}
}
