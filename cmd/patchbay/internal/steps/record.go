// Package steps records the HTTP exchanges of a login as an OAuth client, for people who look for the reason why it fails: what
// was sent and received, and what the specification wants there.
//
// # Guarantees
//
//   - No token, code, verifier, state, secret or cookie is shown: of what is sent and of the answers to it only members and
//     headers with known harmless names are shown, and values that were hidden once are hidden everywhere after.
//   - A login has at most 64 steps, and each message of one at most 64 kB. Further steps are counted and not kept.
//   - Recording changes nothing about the login: who sends the requests checks addresses and bounds as without it.
package steps

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxSteps = 64
	maxBytes = 64 << 10 // of a body
)

// Step is one exchange of a login, or the visit of the browser.
type Step struct {
	Name   string  `json:"name"`
	Sent   string  `json:"sent"`
	Got    string  `json:"got,omitempty"`
	Error  string  `json:"error,omitempty"` // why there was no answer
	Ms     float64 `json:"ms"`
	Checks []Check `json:"checks"`
}

// Check is what the specification wants at a step.
type Check struct {
	Rule string `json:"rule"` // its id in docs/protocol.md
	Text string `json:"text"`
	Mark string `json:"mark"`           // "ok", "fault", or "hint": it should be so, and is not
	Note string `json:"note,omitempty"` // what was there instead
}

// Log records the exchanges of one login. It may be used by several goroutines at once.
type Log struct {
	Server string                   // URL of the server
	Clean  func(text string) string // hides secrets that are known beside those of the login; nil: there are none

	mu      sync.Mutex
	all     []*exchange // guarded by mu
	lost    int         // exchanges that were not kept; guarded by mu
	secrets []string    // guarded by mu
	claims  []Claim     // of the last access token that is a JWT; guarded by mu
}

// exchange is a request with its answer. Its fields do not change once it is in a Log, except those of an open visit.
type exchange struct {
	kind    kind
	method  string
	url     *url.URL
	header  http.Header
	form    url.Values
	body    []byte
	began   time.Time
	took    time.Duration
	err     string
	status  int
	answer  http.Header
	back    []byte
	cut     bool     // the answer is longer than what was kept
	unread  bool     // the answer is a stream
	browser *url.URL // where the browser came back to
	token   []Claim  // of the token in the answer
}

// Around returns a RoundTripper that sends with base and records.
func (l *Log) Around(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		x := &exchange{method: req.Method, url: req.URL, header: req.Header.Clone(), began: time.Now()}
		if req.Body != nil && req.Body != http.NoBody {
			sent, rest, _ := head(req.Body)
			x.body = sent
			req = req.Clone(req.Context()) // a RoundTripper does not change the request
			req.Body = rest
		}
		res, err := base.RoundTrip(req)
		if err == nil {
			x.status, x.answer = res.StatusCode, res.Header.Clone()
			kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
			if x.unread = kind == "text/event-stream"; !x.unread {
				x.back, res.Body, x.cut = head(res.Body)
			}
		} else {
			x.err = err.Error()
		}
		x.took = time.Since(x.began)
		l.add(x)
		return res, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// head reads the begin of a body, and returns it, and the whole body to read in place of it.
func head(body io.ReadCloser) (begin []byte, whole io.ReadCloser, cut bool) {
	begin, err := io.ReadAll(io.LimitReader(body, maxBytes+1))
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	whole = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), body}
	if len(begin) > maxBytes {
		return begin[:maxBytes:maxBytes], whole, true
	}
	return begin, whole, false
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Visit records that the browser goes to a page. The function back records where it came back to, or why it did not.
func (l *Log) Visit(page string) (back func(at *url.URL, err error)) {
	u, err := url.Parse(page)
	if err != nil {
		u = &url.URL{}
	}
	x := &exchange{kind: visit, method: http.MethodGet, url: u, began: time.Now()}
	q := u.Query()
	l.learn(q.Get("state"), q.Get("code_challenge"))
	l.add(x)
	return func(at *url.URL, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		x.took = time.Since(x.began)
		if err != nil {
			x.err = err.Error()
		}
		if x.browser = at; at != nil {
			l.learnLocked(at.Query().Get("code"), at.Query().Get("state"))
		}
	}
}

// add keeps an exchange, and learns its secrets.
func (l *Log) add(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.kind == "" {
		x.kind = l.kindOf(x)
	}
	l.learnLocked(secretsOf(x)...)
	if x.token != nil {
		l.claims = x.token
	}
	if len(l.all) == maxSteps {
		l.lost++
		return
	}
	l.all = append(l.all, x)
}

func (l *Log) learn(list ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learnLocked(list...)
}

const (
	minSecret  = 4   // bytes; shorter texts are hidden at their own places alone
	maxSecrets = 512 // of one login
)

func (l *Log) learnLocked(list ...string) {
	for _, s := range list {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s))} {
			if len(s) >= minSecret && len(l.secrets) < maxSecrets && !slices.Contains(l.secrets, form) {
				l.secrets = append(l.secrets, form)
			}
		}
	}
	slices.SortFunc(l.secrets, func(a, b string) int { return len(b) - len(a) }) // a secret may be in another one
}

// Hide replaces the secrets in a text.
func (l *Log) Hide(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hide(text)
}

func (l *Log) hide(text string) string {
	for _, s := range l.secrets {
		text = strings.ReplaceAll(text, s, hidden)
	}
	if l.Clean != nil {
		text = l.Clean(text)
	}
	return text
}

// Steps returns the steps so far, with the claims of the last access token if it is a JWT. Over says that the login has
// ended: what is missing then will not come.
func (l *Log) Steps(over bool) (list []Step, claims []Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = []Step{}
	for i, x := range l.all {
		s := Step{Name: string(x.kind), Sent: l.hide(x.sentText()), Got: l.hide(x.gotText()), Error: l.hide(x.err), Ms: float64(x.took.Microseconds()) / 1000, Checks: []Check{}}
		for _, c := range l.check(i, over) {
			c.Note = l.hide(c.Note)
			s.Checks = append(s.Checks, c)
		}
		list = append(list, s)
	}
	if l.lost > 0 {
		list = append(list, Step{Name: "further exchanges", Sent: fmt.Sprintf("%d exchanges after the first %d were not recorded", l.lost, maxSteps), Checks: []Check{}})
	}
	for _, c := range l.claims {
		claims = append(claims, Claim{l.hide(c.Name), l.hide(c.Value)})
	}
	return list, claims
}
