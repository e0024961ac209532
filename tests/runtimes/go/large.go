//go:build large
// +build large

// SPDX-License-Identifier: Apache-2.0

package main

import "go/types"

// Never called, but linked.
func init() {
	if spun > 0 {
		types.NewPackage("", "")
		types.NewChecker(nil, nil, nil, nil).Files(nil)
	}
}
