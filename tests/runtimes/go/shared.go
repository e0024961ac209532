//go:build shared
// +build shared

// SPDX-License-Identifier: Apache-2.0

package main

import "C"

//export RunShared
func RunShared() { run() }
