package gateway

import (
	"regexp"
	"strings"
	"testing"
)

// TOOL-26-018.
func TestNames(t *testing.T) {
	long := strings.Repeat("long", 20)
	tests := []struct{ server, feature, want string }{
		{"db", "query", "db_query"},
		{"db-2", "read_all", "db-2_read_all"},
		{"DB", "query", "DB_query"},
		{"my_db", "query", "my_db__query"},
		{"a_b", "c", "a_b__c"},
		{"a", "b_c", "a_b_c"},
		{"a", "b__c", "a_b_c--"},
		{"my db", "query", "my-db--"},
		{"my-db", "query", "my-db_query"},
		{"…", "query", "--"},
		{"db", "files.read", "db_files-read--"},
		{"db", "", "db_--"},
		{"db", long, "db_" + long[:51] + "--"},
		{long, "query", long[:24] + "--"},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		got := Name(tt.server, tt.feature)
		if strings.HasSuffix(tt.want, "--") && !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(tt.want, "--") && got != tt.want {
			t.Errorf("Name(%q, %q) = %q, want %q", tt.server, tt.feature, got, tt.want)
		}
		if seen[got] {
			t.Errorf("Name(%q, %q) = %q, which is taken", tt.server, tt.feature, got)
		}
		seen[got] = true
	}
	// It is part of what hosts keep, in lists of allowed tools.
	if got, want := Name("my db", "files.read"), "my-db--wriuzbi2_files-read--lprf5dpq"; got != want {
		t.Errorf("Name = %q, want %q as ever", got, want)
	}
}

// For any names of two servers and features, the gateway's names differ, are valid, and identify
// the server.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a", "a_b", "a__b", "_a", "a-", "a b", "c", "b_c", "b__c", "_c", "", "a--aaaaaaaa", strings.Repeat("x", 70)} {
		f.Add(s, "c", "a", "b_"+s)
		f.Add("a", s, s, "c")
		f.Add(s, s, "a_b", "c")
	}
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, server1, feature1, server2, feature2 string) {
		g := &Gateway{}
		for _, s := range []string{server1, server2} {
			g.ups = append(g.ups, &upstream{name: s, prefix: prefixOf(s)})
		}
		one, two := Name(server1, feature1), Name(server2, feature2)
		if (server1 != server2 || feature1 != feature2) && one == two {
			t.Errorf("%q of %q and %q of %q are both %q", feature1, server1, feature2, server2, one)
		}
		for _, x := range []struct{ server, feature, name string }{{server1, feature1, one}, {server2, feature2, two}} {
			if !fits.MatchString(x.name) {
				t.Errorf("Name(%q, %q) = %q", x.server, x.feature, x.name)
			}
			up := g.serverOf(x.name)
			if up == nil || up.name != x.server {
				t.Fatalf("%q of %q leads to %v", x.name, x.server, up)
			}
			if own, ok := up.plain(x.name); ok && own != x.feature {
				t.Errorf("%q of %q leads to its feature %q, want %q", x.name, x.server, own, x.feature)
			}
		}
	})
}
