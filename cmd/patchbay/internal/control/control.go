// Package control has the flags of run and chat that say how a model answers, and what it may do.
package control

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Options are the values of the flags.
type Options struct {
	Effort string   `placeholder:"LEVEL" help:"How much the model thinks: none, low, high ..."`
	Set    []string `sep:"none" placeholder:"NAME=VALUE" help:"Set temperature or another parameter (repeatable)."`
	Mode   string   `placeholder:"MODE" help:"ask, or read-only: call only tools that read."`
}

// Begin returns what sets up a conversation, a new or a continued one, as the flags say. It
// leaves the rest as it is.
func (f Options) Begin() (func(*host.Conversation), error) {
	sets := f.Set
	if f.Effort != "" {
		sets = append(sets[:len(sets):len(sets)], "effort="+f.Effort)
	}
	for _, set := range sets {
		if err := Set(new(model.Parameters), set); err != nil {
			return nil, advice.Usagef("%w", err)
		}
	}
	mode, err := host.ParseMode(f.Mode)
	if err != nil {
		return nil, advice.Usagef("%w", err)
	}
	return func(c *host.Conversation) {
		for _, set := range sets {
			_ = Set(&c.Parameters, set) // which has been tried
		}
		if f.Mode != "" {
			c.Mode = mode
		}
	}, nil
}

// Set sets a parameter from NAME=VALUE.
func Set(p *model.Parameters, set string) error {
	name, value, is := strings.Cut(set, "=")
	if !is {
		return advice.Usagef("%q is not NAME=VALUE, such as temperature=0.2", set)
	}
	return p.Set(strings.TrimSpace(name), strings.TrimSpace(value))
}
