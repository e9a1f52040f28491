package model_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// slow emits a piece after each pause, and ends after the last.
type slow []time.Duration

func (slow) Info() model.Info { return model.Info{Name: "slow"} }

func (s slow) Generate(_ context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
	for i, pause := range s {
		time.Sleep(pause)
		if i < len(s)-1 {
			emit(model.Delta{Text: "x"})
		}
	}
	return &model.Response{}, nil
}

// Each pause is noted once, when it has lasted the time.
func TestOnIdle(t *testing.T) {
	for _, tt := range []struct {
		pauses slow
		want   []time.Duration
	}{
		{slow{4 * time.Second}, nil},
		{slow{4 * time.Second, 4 * time.Second, 4 * time.Second}, nil},
		{slow{time.Minute}, []time.Duration{5 * time.Second}},
		{slow{6 * time.Second, time.Second, 9 * time.Second}, []time.Duration{5 * time.Second, 12 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var noted []time.Duration
			pieces := 0
			began := time.Now()
			m := model.OnIdle(tt.pauses, 5*time.Second, func() { noted = append(noted, time.Since(began)) })
			if _, err := m.Generate(t.Context(), &model.Request{}, func(model.Delta) { pieces++ }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(noted, tt.want) || pieces != len(tt.pauses)-1 {
				t.Errorf("%v: noted at %v, want %v; %d pieces", tt.pauses, noted, tt.want, pieces)
			}
		})
	}
}
