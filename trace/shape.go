package trace

import "strings"

// Many issuers give their secrets a recognizable shape: a unique prefix, an alphabet and a
// length. A text is scanned once for words with such a prefix; if the rest looks random, the word
// is a secret, unlike "sk-your-key-here".

// shape is the shape of an issuer's secrets.
type shape struct {
	head  string // prefix
	class uint8  // of the characters after head
	min   int    // minimum number of these
	max   int    // maximum number of these; 0: no limit
}

// Classes of characters.
const (
	isUpper uint8 = 1 << iota
	isLower
	isDigit
	isDash // - and _
	isDot
	isSlash // / and +, of base64 and of paths

	alnum = isUpper | isLower | isDigit
	word  = alnum | isDash
)

// shapes by the first byte of head. PEM and JWT have functions of their own.
var shapes = func() (by [256][]shape) {
	for _, s := range []shape{
		// GitHub.
		{"ghp_", alnum, 36, 251}, {"gho_", alnum, 36, 251}, {"ghu_", alnum, 36, 251}, {"ghs_", alnum, 36, 251}, {"ghr_", alnum, 36, 251},
		{"github_pat_", word, 60, 251},
		// GitLab.
		{"glpat-", word | isDot, 20, 300}, {"gldt-", word, 20, 300}, {"glrt-", word | isDot, 20, 300}, {"glptt-", word, 40, 300},
		{"glcbt-", word, 20, 300}, {"glsoat-", word, 20, 300}, {"gloas-", word, 40, 300}, {"glagent-", word, 40, 300}, {"glft-", word, 20, 300},
		// AWS: ids of access keys, and of temporary ones.
		{"AKIA", isUpper | isDigit, 16, 16}, {"ASIA", isUpper | isDigit, 16, 16},
		// Slack.
		{"xoxb-", word, 20, 300}, {"xoxp-", word, 20, 300}, {"xoxa-", word, 20, 300}, {"xoxr-", word, 20, 300}, {"xoxs-", word, 20, 300},
		{"xoxe-", word, 20, 300}, {"xoxe.", word | isDot, 20, 300}, {"xoxc-", word, 20, 300}, {"xoxd-", word | isSlash | isDot, 20, 600}, {"xapp-", word, 20, 300},
		{"hooks.slack.com/services/", alnum | isSlash, 30, 200},
		// Stripe.
		{"sk_live_", alnum, 16, 300}, {"sk_test_", alnum, 16, 300}, {"rk_live_", alnum, 16, 300}, {"rk_test_", alnum, 16, 300}, {"whsec_", alnum | isSlash, 24, 300},
		// Google.
		{"AIza", word, 35, 35}, {"GOCSPX-", word, 28, 28}, {"ya29.", word | isDot, 30, 2048}, {"1//0", word, 40, 512},
		// Anthropic, OpenAI and others with models.
		{"sk-ant-", word, 24, 300}, {"sk-proj-", word, 24, 300}, {"sk-svcacct-", word, 24, 300}, {"sk-admin-", word, 24, 300}, {"sk-or-v1-", alnum, 40, 300},
		{"sk-", alnum, 32, 300}, {"hf_", alnum, 30, 100}, {"gsk_", alnum, 40, 100}, {"xai-", alnum, 60, 120},
		// Registries of packages.
		{"npm_", alnum, 36, 36}, {"pypi-AgEI", word, 50, 1000},
	} {
		by[s.head[0]] = append(by[s.head[0]], s)
	}
	by['e'] = append(by['e'], shape{})
	by['-'] = append(by['-'], shape{})
	return by
}()

// classOf holds the class of each byte.
var classOf = func() (of [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		of[c], of[c-'a'+'A'] = isLower, isUpper
	}
	for c := '0'; c <= '9'; c++ {
		of[c] = isDigit
	}
	of['-'], of['_'], of['.'], of['/'], of['+'] = isDash, isDash, isDot, isSlash, isSlash
	return of
}()

// starts are the bytes that a secret begins with.
var starts = func() (at [256]bool) {
	for c := range shapes {
		at[c] = shapes[c] != nil
	}
	return at
}()

// shaped replaces the secrets with a known shape. It returns s itself if there are none.
func shaped[T string | []byte](s T) T {
	var out []byte
	done := 0 // s[:done] is in out
	for i := 0; i < len(s); i++ {
		if !starts[s[i]] {
			continue
		}
		n := secretAt(s, i)
		if n == 0 {
			continue
		}
		out = append(append(out, s[done:i]...), Redacted...)
		i += n
		done = i
		i--
	}
	if out == nil {
		return s
	}
	return T(append(out, s[done:]...))
}

// maybeShaped reports whether a JSON string may hold a secret with a shape. A string with escapes
// may.
func maybeShaped(value []byte) bool {
	for i := range value {
		if value[i] == '\\' || starts[value[i]] && secretAt(value, i) > 0 {
			return true
		}
	}
	return false
}

// secretAt returns the length of the secret that begins at s[i], 0 if none does.
func secretAt[T string | []byte](s T, i int) int {
	switch s[i] {
	case 'e':
		return jwt(s, i)
	case '-':
		return pem(s, i)
	}
	for _, shape := range shapes[s[i]] {
		if !begins(s, i, shape.head) || !apart(s, i) {
			continue
		}
		from := i + len(shape.head)
		end := run(s, from, shape.class)
		for end > from && classOf[s[end-1]]&(isDot|isSlash) != 0 { // of the sentence
			end--
		}
		if n := end - from; n < shape.min || shape.max > 0 && n > shape.max || !random(s[from:end]) {
			continue
		}
		if end < len(s) && classOf[s[end]]&alnum != 0 {
			continue
		}
		return end - i
	}
	return 0
}

func begins[T string | []byte](s T, i int, head string) bool {
	return len(s)-i >= len(head) && string(s[i:i+len(head)]) == head
}

// run returns the end of the characters of a class from s[i] on.
func run[T string | []byte](s T, i int, class uint8) int {
	for i < len(s) && classOf[s[i]]&class != 0 {
		i++
	}
	return i
}

// apart reports whether a word begins at s[i]: after anything but a letter or digit, or after one
// that ends an escape, of a URL (%3D) or of JSON (\n, \u003d).
func apart[T string | []byte](s T, i int) bool {
	switch {
	case i == 0 || classOf[s[i-1]]&alnum == 0 && s[i-1] != '-':
		return true
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("bfnrt", s[i-1]) >= 0
	case i >= 3 && s[i-3] == '%':
		return hex(s[i-2]) && hex(s[i-1])
	case i >= 6 && s[i-6] == '\\' && s[i-5] == 'u':
		return hex(s[i-4]) && hex(s[i-3]) && hex(s[i-2]) && hex(s[i-1])
	}
	return false
}

func hex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// random reports whether a text looks random, unlike words with hyphens.
func random[T string | []byte](s T) bool {
	var classes uint8
	var seen [4]uint64
	different := 0
	for i := range len(s) {
		c := s[i]
		classes |= classOf[c]
		if seen[c>>6]&(1<<(c&63)) == 0 {
			seen[c>>6] |= 1 << (c & 63)
			different++
		}
	}
	letters := classes & (isUpper | isLower)
	return different >= 8 && (letters == isUpper|isLower || letters != 0 && classes&isDigit != 0)
}

// jwt returns the length of a JSON Web Token, signed or encrypted. A part that is a JSON object
// in base64 begins with eyJ.
func jwt[T string | []byte](s T, i int) int {
	if !begins(s, i, "eyJ") || !apart(s, i) {
		return 0
	}
	const least = 10 // of {"alg":"…"} and of a payload
	end, parts := run(s, i, word), 1
	if end-i < least {
		return 0
	}
	for parts < 5 && end < len(s) && s[end] == '.' {
		next := run(s, end+1, word)
		if parts == 1 && next-end-1 < least {
			return 0
		}
		end = next
		parts++
	}
	if parts < 3 || !random(s[i:end]) {
		return 0
	}
	if s[end-1] == '.' && parts > 3 { // two of these parts may be empty, and the last may not
		end--
	}
	return end - i
}

// The beginning and the end of keys in PEM, as of certificates and others.
const (
	pemBegin = "-----BEGIN"
	pemEnd   = "-----END"
	pemDash  = "-----"
	pemKey   = "PRIVATE KEY"
	maxLabel = 64
)

// pemSpace replaces the URL encodings of a space.
var pemSpace = strings.NewReplacer("+", " ", "%20", " ")

// pem returns the length of a private key in PEM; up to the end of s if that does not hold all
// of it.
func pem[T string | []byte](s T, i int) int {
	if !begins(s, i, pemBegin) {
		return 0
	}
	rest := string(s[i:min(len(s), i+len(pemBegin)+maxLabel)])
	label, _, ok := strings.Cut(rest[len(pemBegin):], pemDash)
	if !ok || !strings.Contains(pemSpace.Replace(label), pemKey) {
		return 0
	}
	for at := i + len(pemBegin); at < len(s); at++ {
		if s[at] == '-' && begins(s, at, pemEnd) {
			end := at + len(pemEnd)
			for n := 0; end < len(s) && n < maxLabel && !begins(s, end, pemDash); n++ {
				end++
			}
			return min(len(s), end+len(pemDash)) - i
		}
	}
	return len(s) - i
}

// Lines finds private keys in PEM in a text that comes line by line. The zero value is ready for
// use, for one text; it is not safe for concurrent use.
type Lines struct{ inside int }

// maxKeyLines bounds the lines of a key without an end.
const maxKeyLines = 200

// Secret reports whether a line is part of a private key.
func (l *Lines) Secret(line string) bool {
	begin := strings.LastIndex(line, pemBegin)
	begins := begin >= 0 && pem(line, begin) > 0
	switch end := strings.LastIndex(line, pemEnd); {
	case begins && end < begin:
		l.inside = maxKeyLines
		return true
	case end >= 0:
		inside := l.inside > 0
		l.inside = 0
		return inside || begins
	case l.inside > 0:
		l.inside--
		return true
	}
	return false
}
