package schema

import (
	"maps"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// format is a string format that is checked, not only noted.
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
