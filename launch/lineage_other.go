//go:build !linux

package launch

// parentOfAncestors is empty: the environments of other processes are not looked at here.
func parentOfAncestors() string { return "" }
