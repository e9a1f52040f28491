package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/mcp"
)

// cutFor cuts a result of a principal and returns the link to its rest.
func cutFor(t *testing.T, k *rests, who string, size int) (uri string) {
	t.Helper()
	long := &mcp.ToolResult{Content: []mcp.Content{mcp.Text(strings.Repeat(who[:1], size))}}
	res := k.shorten(principal.With(t.Context(), who), "tool", mcp.RawResult(long.JSON()), 100)
	content := lookup(res.JSON(), "content")
	if i := strings.Index(string(content), restScheme); i >= 0 {
		uri, _, _ = strings.Cut(string(content[i:]), `"`)
	}
	if uri == "" || len(content) > 1000 {
		t.Fatalf("the result of %s has no link: %.200s", who, content)
	}
	return uri
}

// reads reports whether a principal can read a rest.
func reads(t *testing.T, k *rests, who, uri string) bool {
	t.Helper()
	res, err := k.read(principal.With(t.Context(), who), uri, 100)
	if err != nil {
		if !strings.Contains(err.Error(), "call the tool again") {
			t.Errorf("%s: %v", uri, err)
		}
		return false
	}
	if got := res.(*mcp.ReadResult).Contents[0].Text; !strings.HasPrefix(got, who[:1]) {
		t.Errorf("%s reads %.40q of %s", who, got, uri)
	}
	return true
}

// A rest can be read by its principal alone, for ten minutes, and is then not kept any longer. Others get the error
// of a rest that does not exist.
func TestRestIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(rests)
		ada := cutFor(t, k, "ada", 1000)
		time.Sleep(4 * time.Minute)
		bob := cutFor(t, k, "bob", 1000)
		fault := func(ctx context.Context, uri string) string {
			_, err := k.read(ctx, uri, 100)
			return fmt.Sprint(err)
		}
		none := restScheme + "none/100"
		for _, who := range []string{"bob", "", "Ada", "ada "} {
			ctx := principal.With(t.Context(), who)
			if of, absent := fault(ctx, ada), fault(ctx, none); of != absent {
				t.Errorf("%q reads the rest of ada: %s; an absent one: %s", who, of, absent)
			}
		}
		if fault(t.Context(), ada) != fault(t.Context(), none) {
			t.Error("a caller without a principal reads the rest of ada")
		}
		for _, step := range []struct {
			sleep    time.Duration
			ada, bob bool
			kept     int
		}{
			{6*time.Minute - time.Second, true, true, 2}, // 9:59 after the result of ada
			{time.Second, false, true, 1},
			{4*time.Minute - time.Second, false, true, 1},
			{time.Second, false, false, 0},
		} {
			time.Sleep(step.sleep)
			synctest.Wait()
			k.mu.Lock()
			kept := len(k.list)
			k.mu.Unlock()
			if a, b := reads(t, k, "ada", ada), reads(t, k, "bob", bob); a != step.ada || b != step.bob || kept != step.kept {
				t.Errorf("after %v: ada reads %v, bob reads %v, %d rests are kept; want %+v", step.sleep, a, b, kept, step)
			}
		}
		again := cutFor(t, k, "ada", 1000)
		time.Sleep(restTime)
		synctest.Wait()
		if reads(t, k, "ada", again) || len(k.list) > 0 {
			t.Error("a rest of later is kept for more than ten minutes")
		}
	})
}

// One principal has at most 32 MiB of rests, all together 64 MiB. The oldest are dropped: first those of the
// principal who needs room.
func TestRestsAreDropped(t *testing.T) {
	long.WithoutRace(t)
	const most = 20 << 20
	k := new(rests)
	uris := map[string]string{}
	cut := func(name string) { uris[name] = cutFor(t, k, strings.TrimRight(name, "0123456789"), most) }
	check := func(when string, want ...string) {
		t.Helper()
		sum := 0
		for _, r := range k.list {
			sum += r.size()
		}
		if sum > restBytes {
			t.Errorf("%s: %d bytes are kept", when, sum)
		}
		for name, uri := range uris {
			if got, want := reads(t, k, strings.TrimRight(name, "0123456789"), uri), strings.Contains(strings.Join(want, " ")+" ", name+" "); got != want {
				t.Errorf("%s: the rest %s is kept: %v", when, name, got)
			}
		}
	}
	cut("bob1")
	cut("ada1")
	check("two principals", "bob1", "ada1")
	cut("ada2")
	check("ada needs room", "bob1", "ada2") // bob has the oldest, and keeps it
	cut("carl1")
	check("three principals", "bob1", "ada2", "carl1")
	cut("dora1")
	check("dora needs room", "ada2", "carl1", "dora1")
}
