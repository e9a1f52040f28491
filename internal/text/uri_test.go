package text

import "testing"

func TestURI(t *testing.T) {
	for uri, want := range map[string]string{
		"db://user:pw@h/x?token=1#part": "db://h/x",
		"db:user:pw@h":                  "db:h",
		"db://user:p/w@h":               "",
		"x://{host}/{id}":               "x://{host}/{id}",
		"x://h/{id}{?token}":            "x://h/{id}",
		"file:///a/b":                   "file:///a/b",
		"":                              "",
	} {
		if got := URI(uri); got != want {
			t.Errorf("URI(%q) = %q, want %q", uri, got, want)
		}
	}
}
