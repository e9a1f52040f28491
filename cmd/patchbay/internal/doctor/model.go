package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// maxModels bounds a list of models, in bytes; some providers have thousands of models.
const maxModels = 16 << 20

// runModel asks a provider for its models, with the key.
func (e *Exam) runModel(ctx context.Context) {
	m := e.Model
	variable := m.KeyVariable()
	switch {
	case m.Key != "":
		e.OK("key", e.keyFrom())
	case variable != "":
		e.Fail("key", "missing, and "+variable+" is not set", "set "+variable+", or give the model a \"key\"")
		return
	default:
		e.OK("key", "none")
	}
	if !e.network(ctx) {
		return
	}
	ids, ok := e.listModels(ctx)
	if !ok {
		return
	}
	for _, id := range ids {
		if id == m.Model {
			e.OK("model", fmt.Sprintf("one of %d listed", len(ids)))
			return
		}
	}
	e.Warn("model", fmt.Sprintf("%q is not among the %s listed%s", screen.Cut(m.Model, 100), screen.Quantity(len(ids), "model"), strings.TrimSuffix(screen.DidYouMean(m.Model, ids), "?")))
}

// keyFrom describes the source of the key.
func (e *Exam) keyFrom() string {
	for _, v := range e.Model.Values() {
		if from := v.From(); v.Member == "key" && len(from) > 0 {
			return strings.Join(from, ", ")
		}
	}
	if name := e.Model.KeyVariable(); name != "" && os.Getenv(name) == e.Model.Key {
		return name + " of the environment"
	}
	return "in the file"
}

// keyAdvice describes how to fix a refused key.
func (e *Exam) keyAdvice() string {
	if e.Model.Key == "" {
		return `give the model a "key"`
	}
	for _, v := range e.Model.Values() {
		if id, ok := strings.CutPrefix(v.Written, "${input:"); ok && v.Member == "key" {
			words := []string{"patchbay", "config", "inputs", "--forget", strings.TrimSuffix(id, "}")}
			if path := entry.File(e.Server); e.Config == "" || !sameFile(path, e.Config) { // the person's own file
				words = append(words, "--config", path)
			}
			return screen.Shell(words) + ", then enter the key again"
		}
	}
	return "check that the key is for this provider: " + e.keyFrom()
}

// listModels returns the names of the models at an address. If it reports false, all steps have
// been added.
func (e *Exam) listModels(ctx context.Context) (ids []string, ok bool) {
	m := e.Model
	address, err := url.Parse(m.Address())
	if err != nil {
		e.Fail("http", secrets.ShownURL(m.Address())+" is not a URL", `correct "baseUrl"`)
		return nil, false
	}
	if m.Provider == "anthropic" && !strings.HasSuffix(address.Path, "/v1") {
		address = address.JoinPath("v1")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("models").String(), nil)
	if err != nil {
		e.Fail("http", err.Error(), `correct "baseUrl"`)
		return nil, false
	}
	if m.Provider == "anthropic" {
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if m.Key != "" {
			req.Header.Set("X-Api-Key", m.Key)
		}
	} else if m.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.Key)
	}
	for name, value := range m.Headers {
		req.Header.Set(name, value)
	}
	secure, err := e.secure()
	if err != nil {
		e.Fail("tls", err.Error(), "correct --server-ca")
		return nil, false
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // send the key to no other address
	}}
	res, err := client.Do(req)
	if err != nil {
		var way *url.Error
		if errors.As(err, &way) { // a query may hold a key
			way.URL = secrets.ShownURL(way.URL)
		}
		next := "try again; --timeout 3m waits longer"
		if !errors.Is(err, context.DeadlineExceeded) {
			next = `check "baseUrl"`
		}
		e.Fail("http", screen.OneLine(err.Error()), next)
		return nil, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxModels))
	if err != nil {
		e.Fail("http", screen.OneLine(err.Error()), "try again")
		return nil, false
	}
	if res.StatusCode != http.StatusOK {
		e.modelStatus(res, body)
		return nil, false
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Data == nil {
		e.Warn("http", "it answers, but not with a list of models: check \"baseUrl\"")
		return nil, false
	}
	for _, d := range list.Data {
		ids = append(ids, d.ID)
	}
	e.OK("http", "it answers and accepts the key")
	if m.Key == "" {
		e.steps[len(e.steps)-1].Detail = "it answers"
	}
	return ids, true
}

// modelStatus explains a response with an HTTP status other than 200.
func (e *Exam) modelStatus(res *http.Response, body []byte) {
	text := fmt.Sprintf("HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &said); err == nil && said.Error.Message != "" {
		text += ": " + screen.Cut(screen.OneLine(said.Error.Message), 300)
	} else if line := screen.OneLine(strings.ToValidUTF8(string(body[:min(len(body), 1000)]), "�")); line != "" {
		text += ": " + screen.Cut(line, 300)
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Fail("auth", text, e.keyAdvice())
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Warn("http", text+"; it answers, but has no list of models: if it does not work, check \"baseUrl\"")
	case status == http.StatusTooManyRequests:
		e.Warn("http", text)
	case status >= 500:
		e.Fail("http", text, "try again later, or contact its operator")
	case status >= 300 && status < 400:
		e.Fail("http", text, `it redirects: set "baseUrl" to that address if you trust it`)
	default:
		e.Fail("http", text, `check "baseUrl"`)
	}
}

// sameFile compares two paths, which may be relative.
func sameFile(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}
