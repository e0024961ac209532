//go:build plugin
// +build plugin

// SPDX-License-Identifier: Apache-2.0

package main

func Run() { run() }
