package inspector

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// A small schema whose parts are many is answered in bounded time and size, however its parts lead back to it.
func TestFormOfManyParts(t *testing.T) {
	twenty := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", 20), ",") }
	several := func(n int, s string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"p` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26) + `":` + s)
		}
		return b.String()[1:]
	}
	many := func(s string) string { return several(300, s) }
	for name, of := range map[string]string{
		"places":   `{"type":"object","$defs":{"a":{"type":"array","prefixItems":[` + twenty(`{"$ref":"#/$defs/a"}`) + `]}},"properties":{"q":{"$ref":"#/$defs/a"}}}`,
		"elements": `{"type":"object","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"additionalProperties":{"$ref":"#/$defs/b"}}},"properties":{` + many(`{"$ref":"#/$defs/b"}`) + `}}`,
		"chains":   `{"type":"object","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"properties":{` + several(200, `{"$ref":"#/$defs/a"}`) + `}}`,
		"itself":   `{"type":"object","properties":{` + many(`{"$ref":"#"}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var f form
			if code := post(t, "/ui/form", `{"schema":`+of+`}`, &f); code != http.StatusOK {
				t.Fatalf("HTTP %d", code)
			}
			if n := fieldsOf(&f.formField); n > 2*maxFormFields+2 {
				t.Errorf("the form has %d fields", n)
			}
			allocated := testing.AllocsPerRun(1, func() { post(t, "/ui/form", `{"schema":`+of+`}`, nil) })
			if allocated > 100_000 {
				t.Errorf("the form takes %.0f allocations", allocated)
			}
			if took := time.Since(began); took > time.Minute { // the allocations are the bound; this is for a machine that does much else
				t.Errorf("the form took %v", took)
			}
		})
	}
}

func fieldsOf(f *formField) int {
	n := 1
	for _, list := range [][]formField{f.Fields, f.Alternatives} {
		for i := range list {
			n += fieldsOf(&list[i])
		}
	}
	for _, one := range []*formField{f.Rest, f.Element} {
		if one != nil {
			n += fieldsOf(one)
		}
	}
	return n
}

// Work ends with the request.
func TestFormEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(Page).form(ctx, []byte(`{"schema":{"type":"object","properties":{"a":{}}}}`)); err != errGone {
		t.Errorf("the form of a request that has ended: %v", err)
	}
}

// A step of a place is short, because each field of an answer repeats the place.
func TestStepsAreShort(t *testing.T) {
	if code := post(t, "/ui/form", `{"schema":{"type":"object","properties":{"a":{}}},"at":[".`+strings.Repeat("0", maxStep)+`"]}`, nil); code != http.StatusNotFound {
		t.Errorf("a long step: HTTP %d", code)
	}
}

// A large call is not written as text.
func TestPasteIsBounded(t *testing.T) {
	body := func(n int) string {
		return `{"server":"s","tool":"t","arguments":{"q":"` + strings.Repeat("'", n) + `"}}`
	}
	if code := post(t, "/ui/paste", body(maxPaste), nil); code != http.StatusRequestEntityTooLarge {
		t.Errorf("more than %d bytes: HTTP %d", maxPaste, code)
	}
	if code := post(t, "/ui/paste", body(maxPaste-100), nil); code != http.StatusOK {
		t.Errorf("less than %d bytes: HTTP %d", maxPaste, code)
	}
}

// Requests that need much memory or time take turns: a slow sender takes nobody's turn, and too many are refused.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := turns{all: make(chan struct{}, maxWaiting), work: make(chan struct{}, maxWorking)}
		var working atomic.Int32
		end := make(chan struct{})
		h := turn.answered(100, func(context.Context, []byte) (any, error) {
			working.Add(1)
			<-end
			return health.Report{}, nil
		})
		codes := make(chan int, 2*maxWaiting)
		ask := func(ctx context.Context, body io.Reader) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/ui/form", body))
			codes <- w.Code
		}
		slow, stop := io.Pipe()
		for range maxWorking {
			go ask(t.Context(), slow)
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		for range maxWorking {
			go ask(t.Context(), strings.NewReader("{}"))
			synctest.Wait()
		}
		for range maxWaiting - 2*maxWorking {
			go ask(ctx, strings.NewReader("{}"))
		}
		synctest.Wait()
		if n := working.Load(); n != maxWorking {
			t.Errorf("%d requests are answered at the same time", n)
		}
		ask(t.Context(), strings.NewReader("{}"))
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("one request too many: HTTP %d", code)
		}
		cancel()
		for range maxWaiting - 2*maxWorking {
			if code := <-codes; code != http.StatusServiceUnavailable {
				t.Errorf("a request that has ended: HTTP %d", code)
			}
		}
		close(end)
		stop.Close()
		for range 2 * maxWorking {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("a request that had its turn: HTTP %d", code)
			}
		}
	})
}
