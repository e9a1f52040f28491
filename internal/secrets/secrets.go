// Package secrets knows the secrets in the configuration of a server and in the flags of a program,
// and keeps them out of the program's output.
//
// A [Known] learns values and removes them from texts, errors and recordings. The functions find
// the secrets of a server ([Of]), of a header and of a URL by their names, and show arguments and
// addresses without them.
//
// # Guarantees
//
//   - A learned value never occurs in a result of [Known.Text] or in a recording by
//     [Known.Redactor], whatever it was named.
//   - In doubt, a name counts as that of a secret: only the value is replaced.
//   - A reference to a variable, ${NAME}, is shown, because it is not a secret.
package secrets

import (
	"context"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	clip "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// Known are the secrets of a run. Once learned, they are removed from all output that the program
// writes itself: lines on standard error, recordings, reports, and a gateway's descriptions of its
// servers. Results from servers are data and pass unchanged. Create it with [New]. It may be used
// by several goroutines.
type Known struct {
	lines *trace.Redactor // redacts values only; cheap to make

	mu      sync.Mutex
	known   map[string]bool // guarded by mu
	headers []string        // names of headers whose values are secrets in recordings; guarded by mu
	frames  *trace.Redactor // redacts recordings; nil until the first; guarded by mu
}

// New returns a Known without secrets.
func New() *Known {
	return &Known{known: map[string]bool{}, lines: trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})}
}

// Learn keeps secrets out of all output from now on.
func (s *Known) Learn(values ...string) {
	if len(values) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(values, func(v string) bool { return !s.known[v] }) {
		return // known already, as with every connection to a server after the first
	}
	for _, v := range values {
		s.known[v] = true
	}
	s.lines.Learn(values...)
	if s.frames != nil {
		s.frames.Learn(values...)
	}
}

// LearnHeader keeps the value of a header that a person has set out of all output: the value itself
// if it may be a secret, and in recordings the header by its name.
func (s *Known) LearnHeader(name, value string) {
	if openHeader(name) {
		return
	}
	s.mu.Lock()
	if s.frames == nil && !slices.Contains(s.headers, name) {
		s.headers = append(s.headers, name)
	}
	s.mu.Unlock()
	s.Learn(headerSecrets(name, value)...)
}

// Text removes the secrets from a text.
func (s *Known) Text(text string) string { return s.lines.Text(text) }

// Error removes the secrets from an error. Errors.As still finds the errors it wraps.
func (s *Known) Error(err error) error { return Cleaned(err, s.Text) }

// Cleaned returns an error with the text that clean makes of its own. Errors.As still finds the
// errors it wraps. If clean changes nothing, it is err itself.
func Cleaned(err error, clean func(text string) string) error {
	if text := clean(err.Error()); text != err.Error() {
		return cleanedError{text, err}
	}
	return err
}

type cleanedError struct {
	text string
	err  error
}

func (e cleanedError) Error() string { return e.text }

func (e cleanedError) Unwrap() error { return e.err }

// Redactor returns the redactor for recordings. It also knows secrets that are learned later,
// except headers.
func (s *Known) Redactor() *trace.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames == nil {
		s.frames = trace.NewRedactor(&trace.RedactorOptions{Values: slices.Collect(maps.Keys(s.known)), Headers: s.headers})
	}
	return s.frames
}

// Of returns the secrets in the configuration of a server.
func Of(s config.Server) []string {
	out := s.Secrets(Name)
	for name, value := range s.Env {
		if Name(name) {
			out = append(out, value)
		}
		out = append(out, URL(value)...)
	}
	for name, value := range s.Headers {
		out = append(out, headerSecrets(name, value)...)
	}
	before := ""
	for _, arg := range s.Args {
		if part := Part(before, arg); part != "" {
			out = append(out, credentials(part)...)
			if m := variableSet().FindStringSubmatch(part); m != nil { // --credential NAME=VALUE
				out = append(out, credentials(m[2])...)
			}
		}
		out = append(out, URL(arg)...)
		before = arg
	}
	return append(out, URL(s.URL)...)
}

// Store returns a store of logins that learns the tokens passing through it.
func (s *Known) Store(v *vault.Vault) login.Store { return &store{v, s} }

type store struct {
	*vault.Vault
	secrets *Known
}

func (s *store) learn(l *login.Record) {
	for _, secret := range []login.Secret{l.ClientSecret, l.Access, l.Refresh} {
		if secret != "" {
			s.secrets.Learn(string(secret))
		}
	}
}

// Load implements login.Store.
func (s *store) Load(ctx context.Context, server string) ([]login.Record, error) {
	list, err := s.Vault.Load(ctx, server)
	for i := range list {
		s.learn(&list[i])
	}
	return list, err
}

// Save implements login.Store.
func (s *store) Save(ctx context.Context, l *login.Record) error {
	s.learn(l)
	return s.Vault.Save(ctx, l)
}

// credentials returns the secrets in the value of a header: the whole value, the part after its
// scheme and, for Basic, the password.
func credentials(value string) []string {
	value = strings.TrimSpace(value)
	out := []string{value}
	scheme, token, ok := strings.Cut(value, " ")
	if !ok {
		return out
	}
	out = append(out, strings.TrimSpace(token))
	if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token)); err == nil && strings.EqualFold(scheme, "Basic") {
		if _, password, ok := strings.Cut(string(pair), ":"); ok {
			out = append(out, password)
		}
	}
	return out
}

// URL returns the secrets in a URL: the password, or the user if there is no password, and the
// values of query parameters that have the name of a secret.
func URL(text string) (out []string) {
	if !strings.Contains(text, "://") {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		if m := badUserInfo().FindStringSubmatch(text); m != nil {
			out = append(out, m[1])
		}
		return out
	}
	if password, ok := u.User.Password(); ok && password != "" {
		out = append(out, password, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	} else if u.User != nil {
		out = append(out, u.User.Username()) // a token, as in https://TOKEN@host
	}
	for name, values := range u.Query() {
		if Name(name) {
			out = append(out, values...)
		}
	}
	return out
}

// badUserInfo matches a password that is not escaped as a URL requires.
var badUserInfo = pattern.Lazy(`://[^\s:/?#@]*:([^\s@]+)@`)

// secretFlag matches an argument that is a flag, with or without its value.
var secretFlag = pattern.Lazy(`(?s)^(--?[A-Za-z0-9][A-Za-z0-9_.-]*)(?:=(.*))?$`)

// variableSet matches an argument that sets a variable, as docker run -e accepts it, or a header.
var variableSet = pattern.Lazy(`(?s)^([A-Za-z_][A-Za-z0-9_-]*)=(.+)$`)

// Part returns the part of an argument that is a secret according to its name: that of the argument
// before it, or of its own beginning. An argument with a reference to a variable has none.
func Part(before, arg string) string {
	if strings.Contains(arg, "${") {
		return ""
	}
	if m := secretFlag().FindStringSubmatch(arg); m != nil {
		if m[2] == "" || Name(m[1]) {
			return m[2]
		}
		return Part("", m[2]) // --env=TOKEN=...
	}
	if m := secretFlag().FindStringSubmatch(before); m != nil && !strings.Contains(before, "=") && Name(m[1]) {
		return arg
	}
	if m := variableSet().FindStringSubmatch(arg); m != nil && Name(m[1]) {
		return m[2]
	}
	if name, value, ok := strings.Cut(arg, ":"); ok && !strings.ContainsAny(name, " /") && Header(name) {
		return strings.TrimLeft(value, " \t")
	}
	return ""
}

// Lookalikes removes from a text everything that looks like a secret.
func Lookalikes(text string) string {
	return string(lookalikes.Frame(trace.Frame{Raw: []byte(text)}).Raw)
}

var lookalikes = trace.NewRedactor(nil)

// IsCode reports whether an argument is a flag that takes code to run, for instance a line of a shell.
func IsCode(arg string) bool { return code().MatchString(arg) }

var code = pattern.Lazy(`^(-[A-Za-z]*c|/[cCkK]|-e|--eval|-Command)$`)

// ShownArgs returns arguments without their secrets.
func ShownArgs(args []string) []string {
	out := slices.Clone(args)
	before := ""
	for i, arg := range args {
		out[i] = ShownArg(before, arg)
		before = arg
	}
	return out
}

// ShownArg returns an argument without its secrets; before is the argument in front of it.
func ShownArg(before, arg string) string {
	if IsCode(before) {
		return Lookalikes(arg) // a command must not be hidden by a KEY=x; in front of it
	}
	if part := Part(before, arg); part != "" {
		return strings.TrimSuffix(arg, part) + trace.Redacted
	}
	if len(URL(arg)) > 0 {
		return ShownURL(arg)
	}
	return arg
}

// ShownURL returns a URL without its user and the values of its query, also if it is not a valid one.
// References to variables stay.
func ShownURL(text string) string {
	base, rest := text, ""
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		base, rest = text[:i], text[i:]
	}
	if u, err := url.Parse(base); err != nil {
		for _, secret := range URL(base) {
			if !strings.Contains(secret, "${") { // a reference may stand where a URL cannot have one
				base = strings.Replace(base, secret, trace.Redacted, 1)
			}
		}
	} else if u.User != nil {
		u.User = url.User(trace.Redacted)
		if base, err = url.PathUnescape(u.String()); err != nil {
			base = u.String()
		}
	}
	query, fragment, marked := strings.Cut(rest, "#")
	if strings.HasPrefix(query, "?") {
		query = queryPart().ReplaceAllStringFunc(query, func(part string) string {
			name, value, ok := strings.Cut(part, "=")
			switch {
			case strings.Contains(part, "${"):
				return part
			case !ok || value == "": // base64 ends with "="
				return trace.Redacted
			}
			return name + "=" + trace.Redacted
		})
	}
	if marked {
		fragment = "#" + fragment
	}
	return base + query + fragment
}

var queryPart = pattern.Lazy(`[^?&;]+`)

// ShownURI returns the URI of a resource for a log: without its user, the values of its query, its
// fragment and what looks like a secret.
func ShownURI(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	shown := clip.URI(uri)
	hidden := strings.Contains(shown, "=")
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		shown += ShownURL(uri[i:])
	}
	if shown = clip.Clip(shown, 1<<10); hidden {
		return Lookalikes(shown)
	}
	return lookalikes.Text(shown)
}

// headerSecrets returns the secrets in a header that a person has set. A header without a name of
// credentials counts too, unless its value is a word or a sentence.
func headerSecrets(name, value string) []string {
	value = strings.TrimSpace(value)
	switch {
	case Header(name):
		return credentials(value)
	case openHeader(name), len(value) < 8, strings.Contains(value, " "), plainWord().MatchString(value):
		return nil
	}
	return []string{value}
}

// plainWord matches a value that does not look like a secret: one kind of letters, or just a
// version.
var plainWord = pattern.Lazy(`^(?:[A-Z]?[a-z]{1,19}(?:[-_./][a-z]{1,19})*|[A-Z]{1,19}|[0-9.-]{1,10})$`)

// openHeader reports whether a header of HTTP or of the protocol never holds a secret.
func openHeader(name string) bool {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "accept", "accept-encoding", "accept-language", "cache-control", "content-type", "host", "origin", "referer", "user-agent",
		"traceparent", "tracestate", "mcp-protocol-version", "mcp-method", "mcp-name":
		return true
	}
	return false
}

// Header reports whether a header holds credentials. Headers of the protocol and of HTTP itself do
// not.
func Header(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == "cookie" || strings.Contains(name, "auth") || Name(name)
}

// Name reports whether a variable is named like a secret. In doubt it returns true, because only
// the value is replaced.
func Name(name string) bool {
	if name == "PWD" || name == "OLDPWD" {
		return false // the current folder of a shell
	}
	name = strings.ToLower(name)
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_. ", r) }) {
		switch word {
		case "pass", "pat", "cred", "creds", "jwt", "bearer", "pw":
			return true
		}
	}
	for _, word := range []string{"token", "secret", "passw", "passphrase", "key", "credential", "auth", "pwd", "cookie", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
