package trace

// The redactor replaces with "[redacted]":
//
//   - the values of headers that carry credentials or sessions;
//   - strings and numbers under a JSON member with the name of a secret, at any depth, in
//     messages and in JSON text inside a string;
//   - strings and numbers in the object {"name": NAME, "value": …} of a secret, and the second string
//     of a pair [NAME, …], NAME and "value" in their usual spellings;
//   - in strings, the values of lines such as "Cookie: …" and "API_KEY=…" (pair.go);
//   - user information and query values with such names in URLs, in paths,
//     header values and strings;
//   - in bytes that are not JSON: the text after such a name and = or :, and after Bearer or
//     Basic;
//   - in a command line: the value of a flag with such a name, and all of the above;
//   - the secrets that the recorder knows, wherever they are;
//   - secrets that have a shape of their own, wherever they are: tokens and keys of GitHub,
//     GitLab, AWS, Slack, Stripe, Google, OpenAI, Anthropic, npm and others, JWTs, private keys
//     in PEM (shape.go).
//
// A JSON Schema under "properties" describes a member and is kept, so that a recorded tool list
// stays valid. A secret without a shape under an ordinary name ("q", "text") is not recognized
// and is kept.

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// Redacted replaces a secret in a trace.
const Redacted = "[redacted]"

// DefaultNames are the member names whose values are replaced when
// [RedactorOptions.Names] is nil.
var DefaultNames = []string{
	"access_token", "refresh_token", "id_token", "subject_token", "actor_token",
	"registration_access_token", "auth_token", "bearer_token", "session_token", "token",
	"api_key", "api_token", "access_key", "secret_access_key", "authorization",
	"proxy_authorization", "x_api_key", "x_auth_token", "x_access_token", "cookie", "set_cookie",
	"password", "passwd", "pwd", "passphrase", "secret", "client_secret", "private_key",
	"client_assertion", "assertion", "code_verifier", "credential", "credentials", "session_id",
}

// secretHeaders are the headers whose values never reach a trace.
var secretHeaders = []string{
	"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Mcp-Session-Id",
	"X-Api-Key", "X-Auth-Token", "X-Access-Token",
}

// RedactorOptions configures a [Redactor]. Nil and the zero value mean
// defaults.
type RedactorOptions struct {
	// Names are the JSON member and URL query names whose values are
	// replaced; case, "_" and "-" make no difference, so "api_key" is also
	// "apiKey" and "API-Key". Nil means [DefaultNames].
	Names []string

	// Headers are header names whose values are replaced, in addition to those that always are
	// replaced: Authorization, Proxy-Authorization, Cookie, Set-Cookie, Mcp-Session-Id and common
	// API key headers. A header is also replaced when its name, its last words, or the x of
	// Mcp-Param-{x}, is one of Names.
	Headers []string

	// Values are known secrets, as for [Redactor.Learn].
	Values []string
}

// minValue is the minimum length of a known secret in bytes.
const minValue = 6

// Redactor replaces secrets with "[redacted]". It is safe for concurrent use. The zero value has the
// defaults, as that of NewRedactor(nil).
type Redactor struct {
	own    *rules                           // nil: the defaults
	values atomic.Pointer[strings.Replacer] // nil without known values

	mu     sync.Mutex
	learnt map[string]bool   // the texts that values replaces; guarded by mu
	lines  map[string]*Lines // standard error of children, by connection; guarded by mu
}

// rules are the names of secrets. They do not change.
type rules struct {
	names   map[string]bool // folded
	headers map[string]bool // folded
	query   *regexp.Regexp  // name=value in a query, nil without names
	text    *regexp.Regexp  // name=value, name: value in free text, nil without names
}

var defaultRules = sync.OnceValue(func() *rules { return newRules(RedactorOptions{}) })

// rules returns the names of secrets.
func (r *Redactor) rules() *rules {
	if r.own == nil {
		return defaultRules()
	}
	return r.own
}

var (
	authScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+`) })
	// In prose "bearer" and "basic" are words; a token after them is long, or the name of the header stands before.
	bearerText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}|(authorization:\s*basic\s+)[A-Za-z0-9+/=_-]+`)
	})
	userInfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"@]+@`) })
)

// NewRedactor returns a redactor; opts may be nil.
func NewRedactor(opts *RedactorOptions) *Redactor {
	var o RedactorOptions
	if opts != nil {
		o = *opts
	}
	r := new(Redactor)
	if o.Names != nil || len(o.Headers) > 0 { // else the defaults, which are compiled once, when they are first used
		r.own = newRules(o)
	}
	r.Learn(o.Values...)
	return r
}

func newRules(o RedactorOptions) *rules {
	if o.Names == nil {
		o.Names = DefaultNames
	}
	r := &rules{names: make(map[string]bool), headers: make(map[string]bool)}
	var alternatives []string
	for _, name := range o.Names {
		folded := fold(name)
		if folded == "" || r.names[folded] {
			continue
		}
		r.names[folded] = true
		// Each letter may be followed by the separators that fold drops.
		var pattern strings.Builder
		for _, c := range folded {
			pattern.WriteString(regexp.QuoteMeta(string(c)))
			pattern.WriteString(`[_-]?`)
		}
		alternatives = append(alternatives, pattern.String())
	}
	if alternatives != nil {
		any := `(?:` + strings.Join(alternatives, "|") + `)`
		encoded := `(?:` + strings.ReplaceAll(strings.Join(alternatives, "|"), `[_-]?`, `(?:[_-]|%(?:25)*(?:5f|2d))?`) + `)`
		r.query = regexp.MustCompile(`(?i)((?:[?&;#]|%(?:25)*(?:3f|26|3b|23))` + encoded + `(?:=|%(?:25)*3d))[^&;#\s"'<>]*`)
		r.text = regexp.MustCompile(`(?i)((?:^|[^A-Za-z0-9])` + any + `\\?["']?\s*[=:]\s*)(?:\[redacted\]|\\?"(?:[^"\\]|\\[^"])*\\?"|\\?"[^"]*$|'[^']*'|[^\s"'&,;}\]]+)`)
	}
	for _, list := range [][]string{secretHeaders, o.Headers} {
		for _, name := range list {
			r.headers[fold(name)] = true
		}
	}
	return r
}

// Learn adds secrets to replace from now on, such as those in the environment of a child: wherever
// they are, as they are, in base64, and as written in JSON, in Go and in a URL. Secrets of less
// than 6 bytes are ignored, because they may be part of any word.
func (r *Redactor) Learn(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.learnt)
	for _, v := range secrets {
		if len(v) < minValue {
			continue
		}
		if r.learnt == nil {
			r.learnt = make(map[string]bool)
		}
		for _, form := range forms(v) {
			r.learnt[form] = true
		}
	}
	if len(r.learnt) == before {
		return
	}
	var pairs []string
	for _, v := range slices.SortedFunc(maps.Keys(r.learnt), longest) {
		pairs = append(pairs, v, Redacted)
	}
	r.values.Store(strings.NewReplacer(pairs...))
}

// minLine is the minimum length in bytes of a line of a secret that counts as a secret too, such
// as of a key in PEM.
const minLine = 16

// forms returns the ways in which a secret may be written.
func forms(s string) []string {
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	list := []string{
		s, url.QueryEscape(s), url.PathEscape(s),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		inner(strconv.Quote(s)), inner(string(appendString(nil, s))),
	}
	if quoted, err := json.Marshal(s); err == nil { // with \u0026 for &
		list = append(list, inner(string(quoted)))
	}
	if lines := strings.Split(s, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				list = append(list, line)
			}
		}
	}
	return list
}

// Text replaces only learnt secrets and those with a known shape.
func (r *Redactor) Text(s string) string {
	s = shaped(s)
	if values := r.values.Load(); values != nil {
		return values.Replace(s)
	}
	return s
}

// longest orders a value before those that it contains, because the first match is replaced.
func longest(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// fold brings apiKey, api_key and API-Key to one form.
func fold(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("_", "", "-", "")

// Frame returns f without its secrets. Msg, Raw and HTTP of f are not changed; unchanged parts
// are shared with f.
func (r *Redactor) Frame(f Frame) Frame {
	if f.Kind == KindStderr && r.ofKey(f.Conn, f.Raw) {
		f.Raw = []byte(Redacted)
	}
	if len(f.Msg) > 0 {
		if msg, err := r.message(f.Msg, 0); err == nil {
			f.Msg = msg
		} else {
			f.Msg, f.Raw = nil, f.Msg
		}
	}
	if len(f.Msg) == 0 && len(f.Raw) > 0 {
		f.Raw = r.free(f.Raw)
	}
	if f.HTTP != nil {
		f.HTTP = r.http(f.HTTP)
	}
	if f.Note != "" {
		f.Note = string(r.free([]byte(f.Note)))
	}
	if strings.HasPrefix(f.For.ID, `"`) { // the client chose its text
		if id := r.free([]byte(f.For.ID)); string(id) != f.For.ID {
			f.For.ID = string(appendString(nil, Redacted))
		}
	}
	f.Args = r.args(f.Args)
	return f
}

// maxStderr bounds the connections whose standard error is tracked.
const maxStderr = 1000

// ofKey reports whether a line of standard error is part of a private key.
func (r *Redactor) ofKey(conn string, line []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[conn]
	if l == nil {
		if !bytes.Contains(line, []byte(pemBegin)) {
			return false
		}
		if r.lines == nil || len(r.lines) >= maxStderr {
			r.lines = map[string]*Lines{}
		}
		l = new(Lines)
		r.lines[conn] = l
	}
	secret := l.Secret(string(line))
	if l.inside == 0 {
		delete(r.lines, conn)
	}
	return secret
}

// args redacts a command line. It returns args itself if there is nothing to replace.
func (r *Redactor) args(args []string) []string {
	var out []string
	for i, arg := range args {
		text := string(r.free([]byte(arg)))
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && value != "" && r.flag(name):
			text = name + "=" + Redacted
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !strings.HasPrefix(arg, "-") && r.flag(args[i-1]):
			text = Redacted
		}
		if text != arg && out == nil {
			out = slices.Clone(args)
		}
		if out != nil {
			out[i] = text
		}
	}
	if out == nil {
		return args
	}
	return out
}

// flag reports whether a flag, a variable or a header has the name of a secret: one of the names,
// or one as its last word, such as --github-token and DB_PASSWORD.
func (r *Redactor) flag(name string) bool {
	name = strings.TrimLeft(name, "-")
	for {
		if r.rules().names[fold(name)] {
			return true
		}
		i := strings.IndexAny(name, "-_.")
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
}

func (r *Redactor) http(h *HTTP) *HTTP {
	out := *h
	out.Path = r.Text(r.url(h.Path))
	if h.Headers == nil {
		return &out
	}
	out.Headers = make(map[string][]string, len(h.Headers))
	for name, values := range h.Headers {
		secret := r.secretHeader(name)
		list := make([]string, len(values))
		for i, v := range values {
			if secret {
				list[i] = Redacted
			} else {
				list[i] = r.Text(authScheme().ReplaceAllString(r.url(v), "$1 "+Redacted))
			}
		}
		out.Headers[name] = list
	}
	return &out
}

func (r *Redactor) secretHeader(name string) bool {
	folded := fold(name)
	param, _ := strings.CutPrefix(folded, "mcpparam")
	x, _ := strings.CutPrefix(folded, "x")
	return r.rules().headers[folded] || r.rules().names[param] || r.rules().names[x] || r.flag(name) // X-Goog-Api-Key, Private-Token
}

// maxNested bounds JSON in a string in JSON in a string.
const maxNested = 4

// message redacts JSON. nested counts the strings it was found in.
func (r *Redactor) message(src []byte, nested int) ([]byte, error) {
	in := pairs{src: src}
	e := editor{
		enter: func(p *place, rest []byte) {
			switch {
			case p.secret:
			case r.rules().names[fold(p.name)]:
				p.secret = !describes(p, rest)
			case namedMembers[p.parent.name] && r.secretHeader(p.name), in.value(r, p):
				p.secret = true
			}
		},
		follows: r.follows,
		leaf: func(p *place, value jsontext.Value) []byte {
			switch k := value.Kind(); {
			case p.secret && (k == '"' || k == '0'):
				return []byte(`"` + Redacted + `"`)
			case k == '"':
				return r.str(value, nested)
			}
			return nil
		},
	}
	return e.edit(src)
}

// describes reports whether the member at p is a JSON Schema of a secret
// rather than a secret. A string is always one.
func describes(p *place, rest []byte) bool {
	if p.parent.name != "properties" || len(rest) == 0 || rest[0] != '{' {
		return false
	}
	value, err := jsontext.NewDecoder(bytes.NewBuffer(rest), lax).ReadValue()
	if err != nil {
		return false
	}
	schema, members := false, 0
	if object(value, func(name string, _ jsontext.Value) error {
		members++
		switch name {
		case "type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not":
			schema = true
		}
		return nil
	}) != nil {
		return false
	}
	return schema || members == 0
}

// str redacts the content of one string, or returns nil.
func (r *Redactor) str(value jsontext.Value, nested int) []byte {
	maybeJSON := bytes.IndexByte(value, '{') >= 0 && nested < maxNested
	maybeURL := bytes.Contains(value, []byte(`:`)) && bytes.ContainsAny(value, "?@#&%")
	maybeAuth := bytes.Contains(value, []byte("earer")) || bytes.Contains(value, []byte("EARER")) || bytes.Contains(value, []byte("asic ")) || bytes.Contains(value, []byte("ASIC "))
	line := maybeLine(value)
	if !maybeJSON && !maybeURL && !maybeAuth && !line && r.values.Load() == nil && !maybeShaped(value) {
		return nil
	}
	s, err := unquote(value)
	if err != nil {
		return nil
	}
	out := s
	if t := strings.TrimSpace(s); maybeJSON && t != "" && (t[0] == '{' || t[0] == '[') {
		if b, err := r.message([]byte(s), nested+1); err == nil {
			out = string(b)
		} else {
			out = string(r.free([]byte(s)))
		}
	} else {
		if out = r.url(s); maybeAuth || maybeURL {
			out = bearerText().ReplaceAllString(out, "$1$2"+Redacted)
		}
		if line {
			out = r.inLines(out)
		}
	}
	if out = r.Text(out); out == s {
		return nil
	}
	return appendString(nil, out)
}

// url redacts user information and named query values in s, which may be a
// URL or text with URLs in it.
func (r *Redactor) url(s string) string {
	if strings.Contains(s, "@") {
		s = userInfo().ReplaceAllString(s, "${1}"+Redacted+"@")
	}
	if r.rules().query != nil && strings.ContainsAny(s, "=%") {
		s = r.rules().query.ReplaceAllString(s, "${1}"+Redacted)
	}
	return s
}

// free redacts bytes that are not JSON by names and marks.
func (r *Redactor) free(b []byte) []byte {
	scheme, name := r.mayHave(b)
	if scheme {
		b = authScheme().ReplaceAll(b, []byte("$1 "+Redacted))
	}
	if bytes.Contains(b, []byte("://")) {
		b = userInfo().ReplaceAll(b, []byte("${1}"+Redacted+"@"))
	}
	if name && r.rules().text != nil {
		b = r.rules().text.ReplaceAll(b, []byte("${1}"+Redacted))
	}
	if r.values.Load() != nil {
		return []byte(r.Text(string(b)))
	}
	return shaped(b)
}

// mayHave reports whether bytes may have a scheme of HTTP authentication, and whether they may have a name of a secret with
// a value, so that the regular expressions, which take a microsecond for a few bytes, look only at these. It may be wrong in
// one direction alone: if it reports false, the expression finds nothing.
func (r *Redactor) mayHave(b []byte) (scheme, name bool) {
	var buf [512]byte
	plain, valued := buf[:0], false
	for _, c := range b {
		switch {
		case c >= 0x80:
			// Letters such as the sign of Kelvin are equal to ASCII ones in (?i).
			return true, true
		case c == '=' || c == ':':
			valued = true
		case classOf[c]&isUpper != 0:
			c += 'a' - 'A'
		case c == '_' || c == '-':
			continue
		}
		plain = append(plain, c)
	}
	scheme = bytes.Contains(plain, []byte("bearer")) || bytes.Contains(plain, []byte("basic"))
	if !valued {
		return scheme, false
	}
	for n := range r.rules().names {
		if bytes.Contains(plain, []byte(n)) {
			return scheme, true
		}
	}
	return scheme, false
}
