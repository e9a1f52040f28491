package chat

import (
	"context"

	"github.com/patchbay-dev/patchbay/host"
)

func offerToolSwitch(ctx context.Context, c *Chat, words []string) []item {
	switch len(words) {
	case 0:
		return []item{{"on", "offer to the model"}, {"off", "hide from the model"}}
	case 1:
		return append(serverItems(c, func(host.ServerStatus) string { return "all its tools" }), toolItems(ctx, c)...)
	}
	return nil
}

func offerServerRetry(_ context.Context, c *Chat, words []string) []item {
	switch len(words) {
	case 0:
		return []item{{"retry", "retry a server now"}}
	case 1:
		return serverItems(c, func(s host.ServerStatus) string { return string(s.State) })
	}
	return nil
}

func offerAllow(ctx context.Context, c *Chat, words []string) []item {
	var out []item
	switch {
	case len(words) == 0:
		out = []item{{"always", "also in later conversations"}, {"off", "ask again"}}
	case len(words) > 1 || words[0] != "always":
		return []item{{"read-only", "those that the server declares read-only"}}
	}
	for _, s := range serverItems(c, func(host.ServerStatus) string { return "all its tools" }) {
		s.text += "/*"
		out = append(out, s)
	}
	return append(out, toolItems(ctx, c)...)
}
