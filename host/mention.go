package host

import (
	"context"

	"github.com/patchbay-dev/patchbay/host/model"
)

// spoken is what a person has said, as the model is given it.
type spoken struct {
	messages []model.Message
	tools    []string // names of those that the person insists on
}

func (c *Conversation) compose(ctx context.Context, text string, more []model.Part) (*spoken, error) {
	var parts []model.Part
	if text != "" {
		parts = words(text)
	}
	return &spoken{messages: []model.Message{{Role: model.User, Parts: append(parts, more...)}}}, nil
}
