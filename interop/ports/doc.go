// Package ports compares programs: ten examples of go-sdk and ten of mcp-go, and their ports to
// package mcp, in a folder each. Its tests run every port against a client or server of the
// original's SDK, with the original's own client where it has one, and count lines: each port is
// shorter. docs/books.md has the table.
//
// A port is a program with Main in place of main, so that the test binary can be each of them.
package ports
