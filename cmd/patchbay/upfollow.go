package main

import (
	"context"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/launch"
)

// follow rereads the configuration whenever it changes, and updates the servers, until ctx ends. A
// faulty or missing file changes nothing.
func (h *upServer) follow(ctx context.Context, path string) {
	defer func() { h.agree.Withdraw() }()
	note := func(text string) { h.a.talk.Note("%s", text) }
	h.servers.Follow(ctx, path, &launch.Following{
		Accept: h.agree.Takes,
		Changed: func(change string) {
			note(change)
			h.chain.ServersChanged(change)
			if name, gone := strings.CutPrefix(change, "- "); gone {
				h.board.Forget(name)
			}
		},
		Warn:  func(text string) { note("warning: " + text) },
		Fault: func(text string) { h.a.talk.Always("patchbay: " + visible(text)) },
		State: func(fault string) { h.chain.Unapplied(path, fault) },
		Right: func() { note(path + " is valid again") },
	})
}

// followLogins retries servers that need a login whenever another process changes the vault, until
// ctx ends.
func (h *upServer) followLogins(ctx context.Context) {
	if v, err := vault.Open("", nil); err == nil { // else nobody can log in
		h.servers.FollowLogins(ctx, v.Dir())
	}
}
