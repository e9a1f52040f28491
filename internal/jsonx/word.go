package jsonx

// Words of eight bytes are searched at once. In the masks below only the lowest set bit is exact;
// higher bits may be false, because a borrow carries upwards.
const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// special marks the bytes of w that must be escaped in a JSON string: control characters, the
// quote and the backslash.
func special(w uint64) uint64 {
	q := w ^ low*'"'
	s := w ^ low*'\\'
	return ((w-low*0x20)&^w | (q-low)&^q | (s-low)&^s) & high
}

// notPlain marks the bytes that special marks and those over 0x7f. The other terms need no mask
// for bytes with the high bit set.
func notPlain(w uint64) uint64 {
	q := w ^ low*'"'
	s := w ^ low*'\\'
	return (w | (w - low*0x20) | (q - low) | (s - low)) & high
}

// quoteOrBackslash marks the quotes and backslashes of w.
func quoteOrBackslash(w uint64) uint64 {
	q := w ^ low*'"'
	s := w ^ low*'\\'
	return ((q-low)&^q | (s-low)&^s) & high
}

// load returns the word at b[i], which the compiler reads in one load.
func load(b []byte, i int) uint64 {
	b = b[i : i+8 : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// loadString is load for strings.
func loadString(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
