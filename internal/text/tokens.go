package text

import "strconv"

// BytesOfToken is about how many bytes of English or JSON are a token of a language model.
const BytesOfToken = 4

// Tokens estimates the number of tokens in that many bytes.
func Tokens(bytes int) int { return (bytes + BytesOfToken - 1) / BytesOfToken }

// AboutTokens words an estimate of tokens: "about 1,200 tokens".
func AboutTokens(n int) string { return "about " + About(n) + " tokens" }

// About words a number with two digits that count: "1,200".
func About(n int) string {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	digits := strconv.Itoa((n + unit/2) / unit * unit)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
