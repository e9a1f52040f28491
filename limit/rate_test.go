package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/limit"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]limit.Rate{
		"100/s":             {Count: 100, Per: time.Second},
		"5/m":               {Count: 5, Per: time.Minute},
		"1000/h":            {Count: 1000, Per: time.Hour},
		"10/30s":            {Count: 10, Per: 30 * time.Second},
		"1/1h30m,burst=7":   {Count: 1, Per: 90 * time.Minute, Burst: 7},
		"1000000000/ms":     {Count: 1_000_000_000, Per: time.Millisecond},
		"100/s,burst=10000": {Count: 100, Per: time.Second, Burst: 10_000},
	} {
		if got, err := limit.ParseRate(text); got != want || err != nil {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "100", "/s", "100/", "0/s", "-1/s", "+1/s", "1.5/s", "1e3/s", "1/d", "1/0s", "1/-1s", "1/s,", "1/s,burst=", "1/s,burst=0",
		"1/s,20", "1/s,burst=1,burst=2", "1000000001/s", "99999999999999999999/s", " 1/s", "1 /s", "1/s ", "5/m/s", strings.Repeat("9", 1<<20)} {
		r, err := limit.ParseRate(text)
		if err == nil {
			t.Errorf("ParseRate(%.50q) = %+v, want an error", text, r)
		} else if len(err.Error()) > 400 {
			t.Errorf("ParseRate(%.50q): the error has %d bytes", text, len(err.Error()))
		}
	}
}

// FuzzParseRate: an accepted text gives a valid rate, which is written so that it is read as the
// same rate.
func FuzzParseRate(f *testing.F) {
	f.Add("100/s")
	f.Add("10/1h30m,burst=7")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := limit.ParseRate(text)
		if err != nil {
			if r != (limit.Rate{}) {
				t.Fatalf("ParseRate(%q) = %+v and %v", text, r, err)
			}
			return
		}
		if r.Count < 1 || r.Per <= 0 || r.Burst < 0 {
			t.Fatalf("ParseRate(%q) = %+v", text, r)
		}
		if again, err := limit.ParseRate(r.String()); again != r || err != nil {
			t.Fatalf("ParseRate(%q) = %+v, which is written %q and read %+v, %v", text, r, r.String(), again, err)
		}
	})
}
