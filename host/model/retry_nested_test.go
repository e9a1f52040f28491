package model_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
)

// down is a model that counts requests, and fails temporarily.
type down struct{ asked int }

func (*down) Info() model.Info { return model.Info{Name: "test/down"} }

func (m *down) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	m.asked++
	return nil, &model.Error{Kind: model.Unavailable}
}

// The options of the outer Retry count: attempts are not multiplied.
func TestRetryOfRetry(t *testing.T) {
	m := &down{}
	r := model.Retry(model.Retry(m, &model.RetryOptions{Attempts: 3, Wait: 1}), &model.RetryOptions{Attempts: 2, Wait: 1})
	if _, err := r.Generate(t.Context(), &model.Request{}, nil); err == nil || m.asked != 2 {
		t.Errorf("%d requests, %v, want 2", m.asked, err)
	}
}
