package bridge

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// The URLs in an error -32042 are all accepted or all refused.
func FuzzRequiredURLs(f *testing.F) {
	f.Add([]byte(`{"elicitations":[{"mode":"url","message":"m","url":"https://example.com/?a","elicitationId":"1"}]}`))
	f.Add([]byte(`{"elicitations":[{"mode":"form","url":"x","elicitationId":"1"}]}`))
	f.Add([]byte(`{"elicitations":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if jsonx.Valid(data, 64) != nil {
			return
		}
		pages := requiredURLs(&jsonrpc.Error{Code: -32042, Data: data})
		list, _ := jsonx.Lookup(data, "elicitations")
		n := 0
		if jsonx.KindOf(list) == '[' {
			for range jsonx.Elements(list) {
				n++
			}
		}
		if len(pages) > 0 && len(pages) != n || len(pages) > maxURLsOnce {
			t.Errorf("%d pages of %s", len(pages), data)
		}
		for _, p := range pages {
			if p.ID == "" || p.URL == "" || p.Mode != "url" {
				t.Errorf("page %+v of %s", p, data)
			}
			if q := p.question(); jsonx.Valid(q.Params, 10) != nil {
				t.Errorf("question %s", q.Params)
			}
			_ = Place(p.URL)
		}
	})
}
