package vault

// Iterations sets the iterations of new passphrase keys, and returns those before.
func Iterations(n int) (before int) {
	before, iterations = iterations, n
	return before
}
