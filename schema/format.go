package schema

import (
	"maps"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"time"
)

// format is a string format that is checked.
type format struct {
	name  string
	want  string // ends "must be ..."
	check func(string) bool
}

// formats are the formats a field may ask for. The first four are those of
// elicitation forms.
var formats = index(
	format{"email", "an email address", isEmail},
	format{"uri", "an absolute URI", isURI},
	format{"date", "a date such as 2026-07-28", isDate},
	format{"date-time", "a time such as 2026-07-28T15:04:05Z", isDateTime},
	format{"time", "a time of day such as 15:04:05Z", isTime},
	format{"hostname", "a host name", isHostname},
	format{"ipv4", "an IPv4 address", func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }},
	format{"ipv6", "an IPv6 address", func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is6() && a.Zone() == ""
	}},
	format{"uuid", "a UUID", isUUID},
)

func index(list ...format) map[string]*format {
	m := make(map[string]*format, len(list))
	for i := range list {
		m[list[i].name] = &list[i]
	}
	return m
}

// moreFormats are those that only foreign schemas use.
var moreFormats = index(
	format{"uri-reference", "a URI or a relative reference", isReference},
	format{"iri", "an absolute URI", isIRI},
	format{"iri-reference", "a URI or a relative reference", isIRIReference},
	format{"uri-template", "a URI template", isTemplate},
	format{"json-pointer", "a JSON pointer such as /a/0", isPointer},
	format{"relative-json-pointer", "a relative JSON pointer such as 1/a", isRelativePointer},
	format{"duration", "a duration such as P3DT12H", isDuration},
	format{"regex", `of the format "regex"`, isRegex},
)

// foreignFormat returns the format called name, or nil if it is not checked.
func foreignFormat(name string) *format {
	if f := formats[name]; f != nil {
		return f
	}
	return moreFormats[name]
}

func formatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(formats)), ", ")
}

func isEmail(s string) bool {
	if len(s) > 254 || strings.ContainsAny(s, " <>()\t\r\n") {
		return false
	}
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s {
		return false
	}
	_, host, _ := strings.Cut(s[strings.LastIndexByte(s, '@'):], "@")
	return isHostname(host) || strings.HasPrefix(host, "[")
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && !strings.ContainsAny(s, " \"<>\\^`{|}") && ascii(s)
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime accepts what time.Time reads: RFC 3339 with upper case letters
// and without leap seconds.
func isDateTime(s string) bool {
	var t time.Time
	return t.UnmarshalText([]byte(s)) == nil
}

func isTime(s string) bool { return isDateTime("2000-01-01T" + s) }

func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] < ' ' {
			return false
		}
	}
	return true
}

func isReference(s string) bool { return isIRIReference(s) && ascii(s) }

func isIRIReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil && !strings.ContainsAny(s, " \"<>\\^`{|}")
}

func isIRI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && isIRIReference(s)
}

// isTemplate looks only for braces that do not match (RFC 6570).
func isTemplate(s string) bool {
	open := false
	for _, c := range s {
		switch {
		case c == '{' && open, c == '}' && !open, c <= ' ':
			return false
		case c == '{', c == '}':
			open = !open
		}
	}
	return !open
}

// isPointer reports whether s is a JSON pointer (RFC 6901).
func isPointer(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return s == "" || s[0] == '/'
}

func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	up := s[:len(s)-len(rest)]
	return up != "" && (up == "0" || up[0] != '0') && (rest == "#" || isPointer(rest))
}

// durationFormat is that of ISO 8601, as in RFC 3339, appendix A.
var durationFormat = sync.OnceValue(func() *regexp.Regexp {
	const date, hours = `([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)`, `T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)`
	return regexp.MustCompile(`^P([0-9]+W|` + date + `(` + hours + `)?|` + hours + `)$`)
})

func isDuration(s string) bool { return durationFormat().MatchString(s) }

func isRegex(s string) bool {
	if len(s) > maxPatternInput {
		return false
	}
	_, err := syntax.Parse(goPattern(s), syntax.Perl)
	return err == nil
}
