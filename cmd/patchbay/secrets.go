package main

import (
	"context"
	"encoding/base64"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/trace"
)

// secrets are what the servers and the flags of a run are given as such. From when they are
// known they are in nothing that this program writes of itself: lines on standard error,
// recordings, reports, and what a gateway tells of its servers. Results of servers are data,
// and pass. It may be used by several goroutines.
type secrets struct {
	lines *trace.Redactor // knows values alone, which costs nothing to make

	mu      sync.Mutex
	known   map[string]bool // guarded by mu
	headers []string        // names of headers whose values are secrets in recordings; guarded by mu
	frames  *trace.Redactor // of recordings; nil until there is one; guarded by mu
}

func newSecrets() *secrets {
	return &secrets{known: map[string]bool{}, lines: trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})}
}

// learn keeps secrets out of everything that is written from now on.
func (s *secrets) learn(values ...string) {
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

// learnHeader keeps the value of a header that a person has set out of everything: as it is, if
// it may be a secret, and in recordings by its name.
func (s *secrets) learnHeader(name, value string) {
	if openHeader(name) {
		return
	}
	s.mu.Lock()
	if s.frames == nil && !slices.Contains(s.headers, name) {
		s.headers = append(s.headers, name)
	}
	s.mu.Unlock()
	s.learn(headerSecrets(name, value)...)
}

// clean takes the secrets out of a text.
func (s *secrets) clean(text string) string { return s.lines.Text(text) }

// cleaned takes the secrets out of an error: what is to be told elsewhere than on standard
// error. What it wraps stays to be found.
func (s *secrets) cleaned(err error) error {
	if text := err.Error(); s.clean(text) != text {
		return cleanedError{s.clean(text), err}
	}
	return err
}

type cleanedError struct {
	text string
	err  error
}

func (e cleanedError) Error() string { return e.text }

func (e cleanedError) Unwrap() error { return e.err }

// redactor is that of recordings.
func (s *secrets) redactor() *trace.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames == nil {
		s.frames = trace.NewRedactor(&trace.RedactorOptions{Values: slices.Collect(maps.Keys(s.known)), Headers: s.headers})
	}
	return s.frames
}

// learnFlags learns what the flags of this run say.
func (a *app) learnFlags() {
	for _, h := range a.Header {
		if name, value, ok := strings.Cut(h, ":"); ok {
			a.secrets.learnHeader(strings.TrimSpace(name), value)
		}
	}
	for _, e := range a.Env {
		name, value, _ := strings.Cut(e, "=")
		a.secrets.learn(secretsOf(config.Server{Env: map[string]string{name: value}})...)
	}
	for _, s := range a.Servers {
		a.secrets.learn(urlSecrets(s)...)
	}
}

// secretsOf returns the values that a server is given as secrets.
func secretsOf(s config.Server) []string {
	out := s.Secrets(secretName)
	for name, value := range s.Env {
		if secretName(name) {
			out = append(out, value)
		}
		out = append(out, urlSecrets(value)...)
	}
	for name, value := range s.Headers {
		out = append(out, headerSecrets(name, value)...)
	}
	before := ""
	for _, arg := range s.Args {
		if part := secretPart(before, arg); part != "" {
			out = append(out, credentials(part)...)
		}
		out = append(out, urlSecrets(arg)...)
		before = arg
	}
	return append(out, urlSecrets(s.URL)...)
}

// learningStore learns the tokens that it holds.
type learningStore struct {
	*vault.Vault
	secrets *secrets
}

func (s *learningStore) learn(l *login.Record) {
	for _, secret := range []auth.Secret{l.ClientSecret, l.Access, l.Refresh} {
		if secret != "" {
			s.secrets.learn(string(secret))
		}
	}
}

// Load implements login.Store.
func (s *learningStore) Load(ctx context.Context, server string) ([]login.Record, error) {
	list, err := s.Vault.Load(ctx, server)
	for i := range list {
		s.learn(&list[i])
	}
	return list, err
}

// Save implements login.Store.
func (s *learningStore) Save(ctx context.Context, l *login.Record) error {
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

// urlSecrets are the secrets in a text that is a URL: who asks, and what its query names as
// secrets.
func urlSecrets(text string) (out []string) {
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
		if secretName(name) {
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

// secretPart returns the part of an argument that is a secret by what names it: the argument
// before it, or its own beginning. What is a variable in a file shows none.
func secretPart(before, arg string) string {
	if strings.Contains(arg, "${") {
		return ""
	}
	if m := secretFlag.FindStringSubmatch(arg); m != nil {
		if m[2] == "" || secretName(m[1]) {
			return m[2]
		}
		return secretPart("", m[2]) // --env=TOKEN=...
	}
	if m := secretFlag.FindStringSubmatch(before); m != nil && !strings.Contains(before, "=") && secretName(m[1]) {
		return arg
	}
	if m := variableSet.FindStringSubmatch(arg); m != nil && secretName(m[1]) {
		return m[2]
	}
	if name, value, ok := strings.Cut(arg, ":"); ok && !strings.ContainsAny(name, " /") && secretHeader(name) {
		return strings.TrimSpace(value)
	}
	return ""
}

// code is a flag behind which a program takes what it runs, a line of a shell for one.
var code = regexp.MustCompile(`^(-[A-Za-z]*c|/[cCkK]|-e|--eval|-Command)$`)

// shownArgs leaves the secrets out of arguments.
func shownArgs(args []string) []string {
	out := slices.Clone(args)
	before := ""
	for i, arg := range args {
		out[i] = shownArg(before, arg)
		before = arg
	}
	return out
}

// shownArg leaves the secrets out of an argument that stands behind another.
func shownArg(before, arg string) string {
	if code.MatchString(before) {
		return cleaned(arg) // a command must not hide behind KEY=x;
	}
	if part := secretPart(before, arg); part != "" {
		return strings.TrimSuffix(arg, part) + trace.Redacted
	}
	if len(urlSecrets(arg)) > 0 {
		return shownURL(arg)
	}
	return arg
}

// shownURL leaves out of a URL who asks, and the values of its query.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		for _, secret := range urlSecrets(text) {
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
	case secretHeader(name):
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

// secretHeader tells whether a header is one of credentials. Those of the protocol and
// of HTTP itself are not.
func secretHeader(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == "cookie" || strings.Contains(name, "auth") || secretName(name)
}

// secretName tells whether a variable is named as secrets are: too often rather than
// not often enough, as it is only its value that is replaced.
func secretName(name string) bool {
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
