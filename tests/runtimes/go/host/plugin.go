// SPDX-License-Identifier: Apache-2.0
// Runs what a plugin has: host PLUGIN [ARGUMENT]. With "grow" it does the same itself: see ../grow.go.
package main

import (
	"os"
	"plugin"
)

//go:noinline
func descend(n int) byte {
	var room [1000]byte
	room[n%1000] = byte(n)
	if n > 0 {
		room[n%999] += descend(n - 1)
	}
	return room[n%1000]
}

//go:noinline
func grown(done chan bool) {
	done <- descend(100) > 0
}

func grow() {
	for {
		done := make(chan bool)
		go grown(done)
		<-done
	}
}

func main() {
	p, err := plugin.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	run, err := p.Lookup("Run")
	if err != nil {
		panic(err)
	}
	os.Args = os.Args[1:]
	if os.Args[len(os.Args)-1] == "grow" {
		go grow()
	}
	run.(func())()
}
