package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

// Trap 8: an authenticated principal has at most a quarter of the places, and unauthenticated
// callers may have all.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		most  int
		taken string // the principals that take places, a letter each; _ is unauthenticated
		want  string // the outcome for each: y for a place, q for "a quarter", f for "all are taken"
	}{
		{8, "aaabbb", "yyqyyq"},
		{8, "aabbccddea", "yyyyyyyyfq"},
		{8, "_________", "yyyyyyyyf"},
		{8, "_______ab", "yyyyyyyyf"},
		{2, "aab", "yqy"}, // at least one
		{0, "aaaaaaaaaa", "yyyyyyyyyy"},
	} {
		var p web.Places
		got := ""
		for _, who := range tt.taken {
			err := p.Take(strings.Trim(string(who), "_"), tt.most, "things")
			switch {
			case err == nil:
				got += "y"
			case strings.Contains(err.Error(), fmt.Sprintf("may have a quarter of the %d", tt.most)):
				got += "q"
			case strings.Contains(err.Error(), fmt.Sprintf("there are %d things", tt.most)):
				got += "f"
			}
		}
		if got != tt.want {
			t.Errorf("of %d places, %s get %s, want %s", tt.most, tt.taken, got, tt.want)
		}
	}
	var p web.Places
	for range 3 {
		if err := p.Take("a", 4, "things"); err != nil {
			t.Fatal(err)
		}
		p.Leave("a")
	}
}
