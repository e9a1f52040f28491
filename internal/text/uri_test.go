package text

import (
	"strings"
	"testing"
)

func TestURI(t *testing.T) {
	for uri, want := range map[string]string{
		"db://user:pw@h/x?token=1#part": "db://h/x",
		"db:user:pw@h":                  "db:h",
		"db://user:p/w@h":               "db://h",
		"x://{host}/{id}":               "x://{host}/{id}",
		"x://h/{id}{?token}":            "x://h/{id}",
		"x://{host}/{id}{?token}":       "x://{host}/{id}",
		"x://{host}/{id}{#part}":        "x://{host}/{id}",
		"file:///a/b":                   "file:///a/b",
		"":                              "",

		// Go does not parse these.
		"evil://h/secret#%zz":            "evil://h/secret",
		"evil://h/secret/%zz?token=1":    "evil://h/secret/%zz",
		"evil://h/secret\x7f?token=1":    "evil://h/secret\x7f",
		"evil://h/secret\x1b\n?t=1":      "evil://h/secret\x1b\n",
		"file://%zz@/secret":             "file:///secret",
		"note://50%?x":                   "note://50%",
		"evil://user:pw@h:1/a@b/%zz":     "evil://h:1/a@b/%zz",
		"evil:user:pw@h\x7f":             "evil:h\x7f",
		"evil://h:80/a@b/%zz":            "evil://h:80/a@b/%zz",
		"no scheme user@h %zz?token=abc": "h %zz",
	} {
		if got := URI(uri); got != want {
			t.Errorf("URI(%q) = %q, want %q", uri, got, want)
		}
	}
}

// Neither part that may be secret is in the result.
func FuzzURI(f *testing.F) {
	f.Add("x", "h/a", "user:pw", "token=1")
	f.Add("x", "%zz/a", "user:p/w", "token=%zz")
	f.Fuzz(func(t *testing.T, scheme, path, user, query string) {
		if strings.ContainsAny(scheme+path+user, "?#") || strings.ContainsAny(path+scheme, "@:/{") || strings.Contains(user, "@") || strings.Contains(user, "/") {
			t.Skip()
		}
		const secret = "SECRET"
		if strings.Contains(strings.ToUpper(scheme+path), secret) {
			t.Skip()
		}
		uri := scheme + "://" + user + secret + "@" + path + "?" + query + secret + "#" + secret
		if got := URI(uri); strings.Contains(got, secret) {
			t.Errorf("URI(%q) = %q", uri, got)
		}
	})
}
