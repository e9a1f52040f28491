package main

import (
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// learnFlags registers the secrets in the flags of this run.
func (a *app) learnFlags() {
	for _, h := range a.Header {
		if name, value, ok := strings.Cut(h, ":"); ok {
			a.secrets.LearnHeader(strings.TrimSpace(name), value)
		}
	}
	for _, e := range a.Env {
		name, value, _ := strings.Cut(e, "=")
		a.secrets.Learn(secrets.Of(config.Server{Env: map[string]string{name: value}})...)
	}
	for _, s := range a.Servers {
		a.secrets.Learn(secrets.URL(s)...)
	}
}
