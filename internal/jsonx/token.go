package jsonx

// The functions of this file check one token at b[i], with the rules of [Valid]. Their caller keeps
// track of objects and arrays.

// SkipSpace returns the position of the first byte from b[i] on that is not white space, or
// len(b).
func SkipSpace(b []byte, i int) int { return skipSpace(b, i) }

// ScanString checks the string whose opening quote is b[i]. It returns the position after its
// closing quote, and whether the text needs [AppendUnescaped].
func ScanString(b []byte, i int) (next int, escaped bool, err *SyntaxError) {
	return scanString(b, i)
}

// SkipString is [ScanString] for a string that is known to be valid.
func SkipString(b []byte, i int) (next int, escaped bool) { return skipString(b, i) }

// AppendUnescaped appends the text of body, the inside of a string that
// [ScanString] has accepted.
func AppendUnescaped(dst, body []byte) []byte { return appendUnescaped(dst, body) }

// ScanValue checks the value whose first byte is b[i] and returns the position after it. The
// argument open is the number of objects and arrays around it; maxDepth bounds these together with
// those inside it.
func ScanValue(b []byte, i, open, maxDepth int) (next int, err *SyntaxError) {
	if i < len(b) {
		switch b[i] {
		case '"':
			next, _, err = scanString(b, i)
			return next, err
		case '{', '[':
			s := NewScanner(b, maxDepth)
			s.open = open
			next, err = s.value(i)
			s.Free()
			return next, err
		}
	}
	return scanBare(b, i)
}

// scanBare checks the number or literal at b[i] and returns the position after it.
func scanBare(b []byte, i int) (next int, err *SyntaxError) {
	if i < len(b) {
		switch b[i] {
		case 't':
			return literal(b, i, "true")
		case 'f':
			return literal(b, i, "false")
		case 'n':
			return literal(b, i, "null")
		}
	}
	return scanNumber(b, i)
}

func literal(b []byte, i int, word string) (next int, err *SyntaxError) {
	end := i + len(word)
	if end > len(b) || string(b[i:end]) != word {
		return 0, &SyntaxError{i, "want a value"}
	}
	return end, nil
}

// scanNumber checks the number at b[i] and returns the position after it.
func scanNumber(b []byte, i int) (next int, err *SyntaxError) {
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && isDigit(b[i]):
		i = skipDigits(b, i)
	case i == start:
		return 0, unexpected(b, i, "want a value")
	default:
		return 0, unexpected(b, i, "want a digit")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if i >= len(b) || !isDigit(b[i]) {
			return 0, unexpected(b, i, "want a digit")
		}
		i = skipDigits(b, i)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i >= len(b) || !isDigit(b[i]) {
			return 0, unexpected(b, i, "want a digit")
		}
		i = skipDigits(b, i)
	}
	return i, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && uint64(1)<<b[i]&(1<<' '|1<<'\n'|1<<'\r'|1<<'\t') != 0 {
		i++
	}
	return i
}

func unexpected(b []byte, i int, msg string) *SyntaxError {
	if i >= len(b) {
		msg = "unexpected end, " + msg
	}
	return &SyntaxError{i, msg}
}
