// SPDX-License-Identifier: Apache-2.0

// The life of a process (life_test.py): `begun` works in it, then `forked` in a child, then it executes itself, where
// `executed` works.
package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func cpu() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Sec) + float64(usage.Utime.Usec)/1e6
}

//go:noinline
func spin() int {
	seconds, _ := strconv.ParseFloat(os.Getenv("SECONDS"), 64)
	x := 0
	for end := cpu() + seconds; cpu() < end; {
		for i := 0; i < 1000; i++ {
			x += i ^ x
		}
	}
	return x
}

//go:noinline
func goBegun() int { return spin() + 1 }

//go:noinline
func goForked() int { return spin() + 2 }

//go:noinline
func goExecuted() int { return spin() + 3 }

//go:noinline
func goLife(phase string) int {
	switch phase {
	case "executed":
		return goExecuted() + 1
	case "forked":
		return goForked() + 1
	}
	x := goBegun()
	if err := exec.Command(os.Args[0], "forked").Run(); err != nil {
		panic(err)
	}
	syscall.Exec(os.Args[0], []string{os.Args[0], "executed"}, os.Environ())
	return x
}

func main() {
	phase := "begun"
	if len(os.Args) > 1 {
		phase = os.Args[1]
	}
	goLife(phase)
}
