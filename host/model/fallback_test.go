package model_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// named answers with its name, or fails.
type named struct {
	name  string
	fails *model.Error
	asked int
}

func (m *named) Info() model.Info { return model.Info{Name: m.name} }

func (m *named) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	m.asked++
	res := &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: m.name}}}, Usage: model.Usage{Input: 1}}
	if m.fails != nil {
		return res, m.fails
	}
	return res, nil
}

// Another model answers while the first cannot, is told of, and is asked at once until the first may
// be back. Errors that another model would have too, or that the person must see, are returned.
func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := &named{name: "a"}, &named{name: "b"}, &named{name: "c"}
		f := model.Fallback(a, b, c)
		ask := func(want string, wantErr *model.Error, used int64, told ...string) {
			t.Helper()
			var said []string
			res, err := f.Generate(t.Context(), &model.Request{}, func(d model.Delta) { said = append(said, d.Again) })
			if res.Message.Text() != want || wantErr == nil && err != nil || wantErr != nil && !errors.Is(err, wantErr) || res.Usage.Input != used || !slices.Equal(said, told) || f.Info().Name != want {
				t.Errorf("Generate = %+v, %v, and %q was said; want %q, %v, %d used and %q; Info has %q", res, err, said, want, wantErr, used, told, f.Info().Name)
			}
		}
		ask("a", nil, 1)
		a.fails = &model.Error{Kind: model.Overloaded, Model: "a", Message: "busy"}
		ask("b", nil, 2, "a: overloaded: busy; b answers")
		ask("b", nil, 1)
		b.fails = &model.Error{Kind: model.NoMoney, Model: "b", Message: "pay"}
		ask("c", nil, 2, "b: no credit left: pay; c answers")
		c.fails = &model.Error{Kind: model.Rejected, Model: "c", Message: "no"}
		ask("c", c.fails, 1)
		c.fails = &model.Error{Kind: model.Unavailable, Model: "c", Message: "gone"}
		ask("c", c.fails, 1)
		time.Sleep(5 * time.Minute)
		a.fails = nil
		ask("a", nil, 1)
		for _, kind := range []model.Kind{model.NoKey, model.NoModel, model.TooLong, model.Rejected, model.Malformed} {
			a.fails = &model.Error{Kind: kind}
			ask("a", a.fails, 1)
		}
		if a.asked != 8 || b.asked != 3 || c.asked != 3 {
			t.Errorf("a, b, c were asked %d, %d and %d times", a.asked, b.asked, c.asked)
		}
	})
}
