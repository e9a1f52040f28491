//go:build !linux

package launch

// parentOfAncestors returns an empty string: it does not read the environments of other processes
// here.
func parentOfAncestors() string { return "" }
