//go:build go1.18
// +build go1.18

// SPDX-License-Identifier: Apache-2.0

package main

//go:noinline
func generic[T any](value T, f func(T)) {
	f(value)
	spun++
}

func init() {
	more["go-generic"] = func(c string) { generic(c, func(s string) { outer(s) }) }
}
