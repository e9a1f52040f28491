// Package secrets knows what a server and the flags of a program are given as secrets, and keeps it out
// of what the program writes.
//
// A [Known] learns values and takes them out of texts, errors and recordings. The functions find the
// secrets of a server ([Of]), of a header and of a URL, by what names them, and show arguments and
// addresses without them.
//
// # Guarantees
//
//   - A value that was learned is in no text that [Known.Text] or a recording by [Known.Redactor] has,
//     whatever named it.
//   - A name is taken for that of a secret too often rather than not often enough: only the value is
//     replaced.
//   - A reference to a variable, ${NAME}, is shown: it is not a secret.
package secrets

import (
	"context"
	"encoding/base64"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/trace"
)

// Known are the secrets of a run. From when they are known they are in nothing that the program writes
// of itself: lines on standard error, recordings, reports, and what a gateway tells of its servers.
// Results of servers are data, and pass. Make it with [New]. It may be used by several goroutines.
type Known struct {
	lines *trace.Redactor // knows values alone, which costs nothing to make

	mu      sync.Mutex
	known   map[string]bool // guarded by mu
	headers []string        // names of headers whose values are secrets in recordings; guarded by mu
	frames  *trace.Redactor // of recordings; nil until there is one; guarded by mu
}

// New returns a Known without secrets.
func New() *Known {
	return &Known{known: map[string]bool{}, lines: trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})}
}

// Learn keeps secrets out of everything that is written from now on.
func (s *Known) Learn(values ...string) {
	if len(values) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(values, func(v string) bool { return !s.known[v] }) {
		return // as with each connection to a server but the first
	}
	for _, v := range values {
		s.known[v] = true
	}
	s.lines.Learn(values...)
	if s.frames != nil {
		s.frames.Learn(values...)
	}
}

// LearnHeader keeps the value of a header that a person has set out of everything: as it is, if
// it may be a secret, and in recordings by its name.
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

// Text takes the secrets out of a text.
func (s *Known) Text(text string) string { return s.lines.Text(text) }

// Error takes the secrets out of an error. What it wraps stays to be found by errors.As.
func (s *Known) Error(err error) error {
	if text := err.Error(); s.Text(text) != text {
		return cleanedError{s.Text(text), err}
	}
	return err
}

type cleanedError struct {
	text string
	err  error
}

func (e cleanedError) Error() string { return e.text }

func (e cleanedError) Unwrap() error { return e.err }

// Redactor is what recordings are made with. It knows what is learned later too, but for headers.
func (s *Known) Redactor() *trace.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames == nil {
		s.frames = trace.NewRedactor(&trace.RedactorOptions{Values: slices.Collect(maps.Keys(s.known)), Headers: s.headers})
	}
	return s.frames
}

// Of returns the values that a server is given as secrets.
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
		}
		out = append(out, URL(arg)...)
		before = arg
	}
	return append(out, URL(s.URL)...)
}

// Store returns a store of logins that learns the tokens which pass through it.
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

// credentials are the secrets in the value of a header: all of it, and what stands behind its
// scheme, of Basic also the password.
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

// URL returns the secrets in a text that is a URL: its user and password, and what its query names as
// secrets.
func URL(text string) (out []string) {
	if !strings.Contains(text, "://") {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		if m := badUserInfo.FindStringSubmatch(text); m != nil {
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

// badUserInfo is a password in what would be a URL if the password was written as URLs want it.
var badUserInfo = regexp.MustCompile(`://[^\s:/?#@]*:([^\s@]+)@`)

// secretFlag is an argument that names something and may hold it.
var secretFlag = regexp.MustCompile(`^(--?[A-Za-z0-9][A-Za-z0-9_.-]*)(?:=(.*))?$`)

// variableSet is an argument that sets a variable, as docker run -e takes it.
var variableSet = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(.+)$`)

// Part returns the part of an argument that is a secret by what names it: the argument
// before it, or its own beginning. What is a variable in a file shows none.
func Part(before, arg string) string {
	if strings.Contains(arg, "${") {
		return ""
	}
	if m := secretFlag.FindStringSubmatch(arg); m != nil {
		if m[2] == "" || Name(m[1]) {
			return m[2]
		}
		return Part("", m[2]) // --env=TOKEN=...
	}
	if m := secretFlag.FindStringSubmatch(before); m != nil && !strings.Contains(before, "=") && Name(m[1]) {
		return arg
	}
	if m := variableSet.FindStringSubmatch(arg); m != nil && Name(m[1]) {
		return m[2]
	}
	if name, value, ok := strings.Cut(arg, ":"); ok && !strings.ContainsAny(name, " /") && Header(name) {
		return strings.TrimSpace(value)
	}
	return ""
}

// Lookalikes leaves out of a text what looks like a secret.
func Lookalikes(text string) string {
	return string(lookalikes.Frame(trace.Frame{Raw: []byte(text)}).Raw)
}

var lookalikes = trace.NewRedactor(nil)

// code is a flag behind which a program takes what it runs, a line of a shell for one.
var code = regexp.MustCompile(`^(-[A-Za-z]*c|/[cCkK]|-e|--eval|-Command)$`)

// ShownArgs leaves the secrets out of arguments.
func ShownArgs(args []string) []string {
	out := slices.Clone(args)
	before := ""
	for i, arg := range args {
		out[i] = ShownArg(before, arg)
		before = arg
	}
	return out
}

// ShownArg leaves the secrets out of an argument that stands behind another.
func ShownArg(before, arg string) string {
	if code.MatchString(before) {
		return Lookalikes(arg) // a command must not hide behind KEY=x;
	}
	if part := Part(before, arg); part != "" {
		return strings.TrimSuffix(arg, part) + trace.Redacted
	}
	if len(URL(arg)) > 0 {
		return ShownURL(arg)
	}
	return arg
}

// ShownURL leaves the user and the values of the query out of a URL.
func ShownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		for _, secret := range URL(text) {
			if !strings.Contains(secret, "${") { // a variable may stand where a URL has none
				text = strings.Replace(text, secret, trace.Redacted, 1)
			}
		}
		return text
	}
	if u.User == nil && u.RawQuery == "" {
		return text
	}
	if u.User != nil {
		u.User = url.User(trace.Redacted)
	}
	query := u.Query()
	for name, values := range query {
		for i, v := range values {
			if !strings.Contains(v, "${") {
				query[name][i] = trace.Redacted
			}
		}
	}
	if len(query) > 0 {
		u.RawQuery = query.Encode()
	}
	shown, err := url.PathUnescape(u.String())
	if err != nil {
		return u.String()
	}
	return shown
}

// headerSecrets are the secrets in a header that a person has set. One that is not named as those of
// credentials are is a secret too, unless its value is a word or a sentence.
func headerSecrets(name, value string) []string {
	value = strings.TrimSpace(value)
	switch {
	case Header(name):
		return credentials(value)
	case openHeader(name), len(value) < 8, strings.Contains(value, " "), plainWord.MatchString(value):
		return nil
	}
	return []string{value}
}

// plainWord is a value that is told from secrets by having one kind of letters, or no more than
// a version.
var plainWord = regexp.MustCompile(`^(?:[A-Z]?[a-z]{1,19}(?:[-_./][a-z]{1,19})*|[A-Z]{1,19}|[0-9.-]{1,10})$`)

// openHeader tells whether a header of HTTP or of the protocol says nothing secret.
func openHeader(name string) bool {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "accept", "accept-encoding", "accept-language", "cache-control", "content-type", "host", "origin", "referer", "user-agent",
		"traceparent", "tracestate", "mcp-protocol-version", "mcp-method", "mcp-name":
		return true
	}
	return false
}

// Header tells whether a header holds credentials. Those of the protocol and
// of HTTP itself are not.
func Header(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == "cookie" || strings.Contains(name, "auth") || Name(name)
}

// Name tells whether a variable is named as secrets are: too often rather than
// not often enough, as it is only its value that is replaced.
func Name(name string) bool {
	if name == "PWD" || name == "OLDPWD" {
		return false // the folder that a shell is in
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
