package main

import (
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/token"
)

var tokenInspectVerb = verb{
	name: "inspect", summary: "Show the claims of a token.", usage: "[TOKEN]",
	examples: []string{"patchbay token inspect eyJhbGciOi...", "patchbay token inspect --json < token.txt"},
	details: `Shows the content of a token or key, and its weaknesses. Does not check the
signature. Without TOKEN, reads the token from standard input.`,
	command: func() command { return new(tokenInspectCmd) },
}

type tokenInspectCmd struct {
	Token string `arg:"" optional:"" help:"The token; default: standard input."`
}

// Run shows a token. It sends nothing anywhere, and does not check the signature.
func (c *tokenInspectCmd) Run(a *app) error {
	text := c.Token
	if text == "" || text == "-" {
		var err error
		if text, err = a.secretInput("token"); err != nil {
			return err
		}
	}
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "Bearer "); ok {
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return usagef("missing token").Hint("patchbay token inspect < token.txt")
	}
	t := token.Inspect(text, time.Now())
	if a.JSON {
		return a.printJSON(t)
	}
	switch t.Kind {
	case "apikey":
		id, _, _ := strings.Cut(strings.TrimPrefix(text, "pb_"), "_")
		a.print("API key of Patchbay, " + a.shown(clip(id)) + "; the file of keys names its owner")
	case "opaque":
		a.print("opaque token: only its issuer can read it")
	default:
		a.print("header")
		a.print(a.shownJSON(t.Header))
		a.print("claims")
		a.print(a.shownJSON(t.Claims))
		for _, line := range t.Times {
			a.print(a.shown(line))
		}
		a.print("The signature was not checked.")
	}
	for _, w := range t.Warnings {
		a.print(a.paint("warning: ", "33") + a.shown(w))
	}
	return nil
}
