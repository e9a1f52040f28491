package trace

// ReadBounded is Read with a smaller bound, for tests.
var ReadBounded = read
