package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/model"
)

// fake is a model whose attempts are functions.
type fake struct {
	info     model.Info
	generate func(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error)
}

var _ model.Model = (*fake)(nil)

func (f *fake) Info() model.Info { return f.info }

func (f *fake) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	return f.generate(ctx, req, emit)
}

// failing fails with errs, one per attempt, then answers.
func failing(errs ...error) (*fake, *[]time.Time) {
	asked := new([]time.Time)
	return &fake{generate: func(_ context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
		*asked = append(*asked, time.Now())
		emit(model.Delta{Text: "hel"})
		if n := len(*asked); n <= len(errs) {
			return nil, errs[n-1]
		}
		emit(model.Delta{Text: "lo"})
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "hello"}}}}, nil
	}}, asked
}

func TestRetryAsksAgainAfterLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &model.Error{Kind: model.Overloaded}
		m, asked := failing(busy, busy, busy)
		var text strings.Builder
		again := 0
		resp, err := model.Retry(m, nil).Generate(t.Context(), &model.Request{}, func(d model.Delta) {
			if d.Again != "" {
				again++
				text.Reset()
			}
			text.WriteString(d.Text)
		})
		if err != nil || resp.Message.Text() != "hello" || text.String() != "hello" || again != 3 {
			t.Fatalf("Generate = %+v, %v; emitted %q, begun again %d times", resp, err, &text, again)
		}
		for i, longest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if got := (*asked)[i+1].Sub((*asked)[i]); got < longest/2 || got > longest {
				t.Errorf("wait %d = %v, want %v to %v", i+1, got, longest/2, longest)
			}
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	limited := &model.Error{Kind: model.Limited}
	for _, tt := range []struct {
		name     string
		err      error
		attempts int
	}{
		{"after the bound of attempts", limited, 5},
		{"at once when the key is wrong", &model.Error{Kind: model.NoKey}, 1},
		{"at once when the provider wants more patience than there is", &model.Error{Kind: model.Limited, After: time.Hour}, 1},
		{"at once on an error of another kind", errors.New("no"), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, asked := failing(tt.err, tt.err, tt.err, tt.err, tt.err, tt.err)
				if _, err := model.Retry(m, nil).Generate(t.Context(), &model.Request{}, nil); !errors.Is(err, tt.err) {
					t.Errorf("Generate = %v, want %v", err, tt.err)
				}
				if len(*asked) != tt.attempts {
					t.Errorf("asked %d times, want %d", len(*asked), tt.attempts)
				}
			})
		})
	}
}

func TestRetryHonoursAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, asked := failing(&model.Error{Kind: model.Limited, After: 20 * time.Second})
		if _, err := model.Retry(m, nil).Generate(t.Context(), &model.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := (*asked)[1].Sub((*asked)[0]); got < 20*time.Second || got > 21*time.Second {
			t.Errorf("asked again after %v, want 20 s and a little", got)
		}
	})
}

func TestRetryEndsSilence(t *testing.T) {
	for _, tt := range []struct {
		name   string
		begins bool
		want   time.Duration
	}{
		{"before the answer begins", false, 5 * time.Minute},
		{"in the middle of it", true, time.Minute + 2*time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fake{generate: func(ctx context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
					if tt.begins {
						time.Sleep(time.Minute)
						emit(model.Delta{})
					}
					<-ctx.Done()
					return &model.Response{Model: "x"}, context.Cause(ctx)
				}}
				start := time.Now()
				resp, err := model.Retry(m, &model.RetryOptions{Attempts: 1}).Generate(t.Context(), &model.Request{}, func(d model.Delta) {
					t.Errorf("emitted %+v", d)
				})
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != model.Unavailable || resp == nil {
					t.Errorf("Generate = %v, %v; want an error of kind %q and what there was", resp, err, model.Unavailable)
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("given up after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A slow reader of the answer is not a silent provider.
func TestRetryWaitsForEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := failing()
		resp, err := model.Retry(m, nil).Generate(t.Context(), &model.Request{}, func(model.Delta) { time.Sleep(time.Hour) })
		if err != nil || resp.Message.Text() != "hello" {
			t.Errorf("Generate = %+v, %v", resp, err)
		}
	})
}

func TestRetryIsCancelled(t *testing.T) {
	why := errors.New("the user is gone")
	for name, m := range map[string]*fake{
		"in a wait": {generate: func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
			return nil, &model.Error{Kind: model.Limited, After: time.Minute}
		}},
		"in an answer": {generate: func(ctx context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
			emit(model.Delta{Text: "hel"})
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(10*time.Second, func() { cancel(why) })
				if _, err := model.Retry(m, nil).Generate(ctx, &model.Request{}, nil); !errors.Is(err, why) {
					t.Errorf("Generate = %v, want %v", err, why)
				}
				if got := time.Since(start); got != 10*time.Second {
					t.Errorf("returned after %v, want 10 s", got)
				}
			})
		})
	}
}

// The tokens of attempts that broke off are counted, whether an answer comes in the end or not.
func TestRetryCountsAllAttempts(t *testing.T) {
	cut := &model.Error{Kind: model.Unavailable}
	for _, tt := range []struct {
		about string
		resps []*model.Response // one for each attempt, beside an error except for the last
		err   error             // of the last attempt
	}{
		{"an answer", []*model.Response{{Usage: model.Usage{Input: 100, Output: 3}}, nil, {Usage: model.Usage{Input: 100, Cached: 20}}, {Usage: model.Usage{Input: 100, Output: 10}}}, nil},
		{"an error", []*model.Response{{Usage: model.Usage{Input: 200, Output: 13, Cached: 20}}, nil, nil, {Usage: model.Usage{Input: 100}}}, &model.Error{Kind: model.NoKey}},
		{"nothing at last", []*model.Response{{Usage: model.Usage{Input: 300, Output: 13, Cached: 20}}, nil}, &model.Error{Kind: model.NoKey}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			m := &fake{generate: func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
				n++
				if n == len(tt.resps) {
					return tt.resps[n-1], tt.err
				}
				return tt.resps[n-1], cut
			}}
			resp, err := model.Retry(m, nil).Generate(t.Context(), &model.Request{}, nil)
			if err != tt.err || resp == nil || resp.Usage != (model.Usage{Input: 300, Output: 13, Cached: 20}) {
				t.Fatalf("%s: Generate = %+v, %v; want the usage of all attempts", tt.about, resp, err)
			}
			last := model.Usage{}
			if r := tt.resps[len(tt.resps)-1]; r != nil {
				last = r.Usage
			}
			last.Add(resp.Retried)
			if last != resp.Usage {
				t.Errorf("%s: of the usage %+v the attempts before took %+v", tt.about, resp.Usage, resp.Retried)
			}
		})
	}
}

func TestPrice(t *testing.T) {
	var u model.Usage
	u.Add(model.Usage{Input: 900_000, Output: 100_000, Cached: 400_000})
	u.Add(model.Usage{Input: 100_000, Stored: 100_000})
	if diff := cmp.Diff(model.Usage{Input: 1_000_000, Output: 100_000, Cached: 400_000, Stored: 100_000}, u); diff != "" {
		t.Error(diff)
	}
	if got := (model.Price{Input: 3, Output: 15, Cached: 0.5}).Of(u); got < 3.4999 || got > 3.5001 {
		t.Errorf("Of(%+v) = %v, want 3.5: 0.5 M at 3, 0.4 M at 0.5, 0.1 M at 3, 0.1 M at 15", u, got)
	}
}

// The usage of each attempt that failed is told before the next one, also by a model that stands in.
func TestRetryTellsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := func(attempts int) *fake {
			return &fake{generate: func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
				if attempts--; attempts < 0 {
					return &model.Response{Usage: model.Usage{Input: 1}}, nil
				}
				return &model.Response{Usage: model.Usage{Input: 10, Output: 2}}, &model.Error{Kind: model.Unavailable}
			}}
		}
		m := model.Fallback(model.Retry(broken(9), &model.RetryOptions{Attempts: 3}), model.Retry(broken(1), nil))
		var lost []model.Usage
		resp, err := m.Generate(t.Context(), &model.Request{}, func(d model.Delta) {
			if d.Again != "" {
				lost = append(lost, d.Lost)
			}
		})
		one := model.Usage{Input: 10, Output: 2}
		if diff := cmp.Diff([]model.Usage{one, one, one, one}, lost); err != nil || diff != "" || resp.Usage != (model.Usage{Input: 41, Output: 8}) {
			t.Errorf("Generate = %+v, %v; lost (-want +got): %s", resp, err, diff)
		}
	})
}
