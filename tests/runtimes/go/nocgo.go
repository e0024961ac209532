//go:build !cgo
// +build !cgo

// SPDX-License-Identifier: Apache-2.0

package main

var more = map[string]func(string){}
