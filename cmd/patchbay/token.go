package main

import (
	"io"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/token"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// tokenVerb has the verbs about credentials. New credentials go to standard output only.
var tokenVerb = verb{
	name: "token", summary: "Make and inspect test tokens, API keys and passwords.",
	examples: []string{"patchbay token key alice --file keys.jsonl", "patchbay token jwt alice --secret env:SECRET --ttl 1h", "patchbay token inspect < token.txt"},
	minor:    true,
	details:  `For tests and small setups. Only get uses the network.`,
	verbs:    []*verb{&tokenKeyVerb, &tokenPasswordVerb, &tokenJWTVerb, &tokenGetVerb, &tokenInspectVerb},
}

var tokenKeyVerb = verb{
	name: "key", summary: "Make an API key.", usage: "SUBJECT",
	examples: []string{"patchbay token key alice --file keys.jsonl", "patchbay token key ci --scope read --scope write --ttl 720h"},
	details: `Prints the key and its entry, a line for the file of --auth apikeys:FILE, to
which --file appends it. The key itself is not stored.`,
	command: func() command { return new(tokenKeyCmd) },
}

type tokenKeyCmd struct {
	Subject string        `arg:"" help:"Owner of the key."`
	File    string        `name:"file" placeholder:"FILE" help:"Add the entry to this file."`
	Name    string        `name:"name" placeholder:"TEXT" help:"Display name."`
	Scopes  []string      `name:"scope" placeholder:"SCOPE" help:"Grant this scope (repeatable)."`
	Roles   []string      `name:"role" placeholder:"ROLE" help:"Give this role (repeatable)."`
	TTL     time.Duration `name:"ttl" placeholder:"TIME" help:"Lifetime; default: unlimited."`
}

// Run creates a key.
func (c *tokenKeyCmd) Run(a *app) error {
	key, entry := auth.NewAPIKey(c.Subject)
	entry.Name, entry.Scopes, entry.Roles = c.Name, c.Scopes, c.Roles
	if c.TTL < 0 {
		return usagef("--ttl %v is negative", c.TTL)
	}
	if c.TTL > 0 {
		entry.Expires = time.Now().Add(c.TTL).UTC().Truncate(time.Second)
	}
	line, err := jsonx.Marshal(entry)
	if err == nil {
		_, err = auth.ParseAPIKeys(line)
	}
	if err != nil {
		return usagef("%v", err)
	}
	if c.File != "" {
		if err := ownfile.AppendLine(c.File, line); err != nil {
			return err
		}
		a.talk.Note("added key %s to %s; the key is shown only once", entry.ID, c.File)
	}
	switch {
	case a.JSON:
		if err := a.printJSON(struct {
			Key   string      `json:"key"`
			Entry auth.APIKey `json:"entry"`
		}{key, entry}); err != nil {
			return err
		}
	case c.File != "":
		a.print(key)
	default:
		a.print(key)
		a.print(string(line))
		a.talk.Note("the first line is the key, for the caller; the second is for the file of --auth apikeys:FILE")
	}
	return nil
}

var tokenPasswordVerb = verb{
	name: "password", summary: "Make the entry of a user with a password.", usage: "USER",
	examples: []string{"patchbay token password alice >> users"},
	details: `Asks for the password, or reads it from standard input, and prints a line for
the file of --auth basic:FILE.`,
	command: func() command { return new(tokenPasswordCmd) },
}

type tokenPasswordCmd struct {
	User   string   `arg:"" help:"Name of the user."`
	Scopes []string `name:"scope" placeholder:"SCOPE" help:"Grant this scope (repeatable)."`
}

// Run prints a line for --auth basic:FILE.
func (c *tokenPasswordCmd) Run(a *app) error {
	if strings.ContainsAny(c.User, ":\r\n") || strings.HasPrefix(c.User, "#") {
		return usagef("user names must not contain a colon or begin with #: %q", c.User)
	}
	password, err := a.secretInput("password of " + c.User)
	if err != nil {
		return err
	}
	hash, err := auth.HashPassword(password)
	if err != nil {
		return usagef("%v", err)
	}
	line := c.User + ":" + hash
	if len(c.Scopes) > 0 {
		line += ":" + strings.Join(c.Scopes, " ")
	}
	a.print(line)
	return nil
}

// secretInput asks a person for a secret, or reads a line of standard input.
func (a *app) secretInput(what string) (string, error) {
	if a.tty.in && a.tty.err {
		return a.answers.Ask("", config.Input{ID: what, Description: what, Password: true}, false)
	}
	raw, err := io.ReadAll(io.LimitReader(a.stdin, 64<<10))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimRight(line, "\r"), nil
}

var tokenJWTVerb = verb{
	name: "jwt", summary: "Make a JWT.", usage: "SUBJECT --secret env:NAME|FILE | --key FILE",
	examples: []string{"patchbay token jwt alice --secret env:SECRET", "patchbay token jwt alice --key k.pem --issuer https://a.example --scope read"},
	details: `Signs with a secret (HS256) for --auth hmac:..., or with the key in a file
(ES256; a missing file gets a new key) for --auth jwt:ISSUER,keys=FILE. The
audience must be that of the server: its URL, unless --auth has audience=.`,
	command: func() command { return new(tokenJWTCmd) },
}

type tokenJWTCmd struct {
	Subject  string        `arg:"" help:"Subject of the token (sub)."`
	Secret   string        `name:"secret" placeholder:"FROM" help:"Sign with this secret: env:NAME or a file."`
	Key      string        `name:"key" placeholder:"FILE" help:"Sign with this key (PEM); a missing file gets a new key."`
	Issuer   string        `name:"issuer" placeholder:"URL" help:"Issuer (iss)."`
	Audience []string      `name:"audience" placeholder:"URL" help:"Audience (aud; repeatable)."`
	Scopes   []string      `name:"scope" placeholder:"SCOPE" help:"Grant this scope (repeatable)."`
	Roles    []string      `name:"role" placeholder:"ROLE" help:"Give this role (repeatable)."`
	Claims   []string      `name:"claim" sep:"none" placeholder:"K=V" help:"Another claim; V is JSON, or text (repeatable)."`
	TTL      time.Duration `name:"ttl" default:"1h" placeholder:"TIME" help:"Lifetime."`
}

// Run prints a token.
func (c *tokenJWTCmd) Run(a *app) error {
	var key any
	switch {
	case (c.Secret == "") == (c.Key == ""):
		return usagef("give either --secret or --key").Hint("patchbay token jwt " + c.Subject + " --secret env:SECRET")
	case c.Secret != "":
		secret, err := listen.ReadSecret(c.Secret)
		if err != nil {
			return usagef("--secret: %v", err)
		}
		if len(secret) < 32 {
			return usagef("--secret has %d bytes; it needs 32", len(secret)).Hint("openssl rand -base64 32")
		}
		key = []byte(secret)
	default:
		private, made, err := token.Key(c.Key)
		if err != nil {
			return err
		}
		if made {
			a.talk.Note("made a new key for tests: %s", c.Key)
		}
		key = private
	}
	if c.TTL <= 0 {
		return usagef("--ttl must be positive, not %v", c.TTL)
	}
	t := &token.JWT{Subject: c.Subject, Issuer: c.Issuer, Audience: c.Audience, Scopes: c.Scopes, Roles: c.Roles, Claims: c.Claims, TTL: c.TTL}
	payload, err := t.Payload(time.Now())
	if err != nil {
		return usagef("%w", err)
	}
	text, err := token.Sign(payload, key)
	if err != nil {
		return err
	}
	a.print(text)
	return nil
}
