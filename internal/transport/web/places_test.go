package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

// Trap 8: a known principal has at most a quarter of the places, and those who are not known have
// what there is.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		most  int
		taken string // who takes places, a letter each; _ is nobody
		want  string // of each, whether it gets one: y, q for "a quarter", f for "all are taken"
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
