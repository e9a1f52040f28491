package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// maxModels bounds a list of models, of which some providers have thousands.
const maxModels = 16 << 20

// modelExams makes the examinations of models: of those that are named, or of all.
func (c *configDoctorCmd) modelExams(a *app, wanted func(name string) bool) ([]*exam, error) {
	set, err := a.models()
	if err != nil {
		return nil, err
	}
	var out []*exam
	begin := func(m config.Model, s config.Server) *exam {
		e := &exam{a: a, server: s, model: &m, done: make(chan struct{})}
		out = append(out, e)
		return e
	}
	list := slices.Clone(set.list)
	for _, name := range append(slices.Clone(c.Names), set.use) {
		known := slices.ContainsFunc(list, func(m config.Model) bool { return m.Name == name })
		if of, _, _ := strings.Cut(name, "/"); name != of && slices.Contains(config.Providers, of) && !known {
			list = append(list, ofEnvironment(name))
		}
	}
	for _, m := range list {
		if !wanted(m.Name) {
			continue
		}
		e := begin(m, asServer(&m))
		e.ok("config", cmp.Or(hereLine(m.Source), "the environment alone"))
		if missing := m.Missing(); len(missing) > 0 {
			e.fail("key", missing[0].Text, missing[0].Fix)
			continue
		}
		resolved, err := a.resolveModel(m)
		if err != nil {
			e.fail("key", err.Error(), "")
			continue
		}
		e.model = &resolved
	}
	for _, p := range set.faults {
		if p.Model != "" && wanted(p.Model) && set.named(p.Model) == nil {
			begin(config.Model{Name: p.Model}, config.Server{Name: p.Model}).fail("config", p.String(), "correct the file")
		}
	}
	return out, nil
}

// runModel asks a model's provider which models there are, with the key.
func (e *exam) runModel(ctx context.Context) {
	m := e.model
	variable := keyVariable(m)
	switch {
	case m.Key != "":
		e.ok("key", e.keyFrom())
	case variable != "":
		e.fail("key", "there is none, and "+variable+" is not set", "set "+variable+", or give the model a \"key\"")
		return
	default:
		e.ok("key", "none is sent")
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
			e.ok("model", fmt.Sprintf("it is one of %d that are listed", len(ids)))
			return
		}
	}
	e.warn("model", fmt.Sprintf("%q is none of the %s that are listed%s", cut(m.Model, 100), quantity(len(ids), "model"), strings.TrimSuffix(didYouMean(m.Model, ids), "?")))
}

// keyFrom tells where the key is from.
func (e *exam) keyFrom() string {
	for _, v := range e.model.Values() {
		if from := v.From(); v.Member == "key" && len(from) > 0 {
			return strings.Join(from, ", ")
		}
	}
	if name := keyVariable(e.model); name != "" && os.Getenv(name) == e.model.Key {
		return name + " of the environment"
	}
	return "the one in the file"
}

// keyAdvice words what to do when a key is refused.
func (e *exam) keyAdvice() string {
	if e.model.Key == "" {
		return `give the model a "key"`
	}
	for _, v := range e.model.Values() {
		if id, ok := strings.CutPrefix(v.Written, "${input:"); ok && v.Member == "key" {
			words := []string{"patchbay", "config", "inputs", "--forget", strings.TrimSuffix(id, "}")}
			if path := fileOf(e.server); !sameFilePath(path, e.a.file.path) { // the person's own
				words = append(words, "--config", path)
			}
			return shell(words) + ", and be asked for the key again"
		}
	}
	return "is the key right, and for this provider? it is " + e.keyFrom()
}

// listModels gets the names of the models at an address. It is not ok if there is nothing more
// to say.
func (e *exam) listModels(ctx context.Context) (ids []string, ok bool) {
	m := e.model
	address, err := url.Parse(modelAddress(m))
	if err != nil {
		e.fail("http", secrets.ShownURL(modelAddress(m))+" is not a URL", `correct "baseUrl"`)
		return nil, false
	}
	if m.Provider == "anthropic" && !strings.HasSuffix(address.Path, "/v1") {
		address = address.JoinPath("v1")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("models").String(), nil)
	if err != nil {
		e.fail("http", err.Error(), `correct "baseUrl"`)
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
		e.fail("tls", err.Error(), "correct --server-ca")
		return nil, false
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is for this address
	}}
	res, err := client.Do(req)
	if err != nil {
		var way *url.Error
		if errors.As(err, &way) { // a query may hold a key
			way.URL = secrets.ShownURL(way.URL)
		}
		next := "try again; --timeout 3m waits longer"
		if !errors.Is(err, context.DeadlineExceeded) {
			next = `is "baseUrl" right?`
		}
		e.fail("http", oneLine(err.Error()), next)
		return nil, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxModels))
	if err != nil {
		e.fail("http", oneLine(err.Error()), "try again")
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
		e.warn("http", "it answers, but not with a list of models: is \"baseUrl\" the address of the API?")
		return nil, false
	}
	for _, d := range list.Data {
		ids = append(ids, d.ID)
	}
	e.ok("http", "it answers, and takes the key")
	if m.Key == "" {
		e.steps[len(e.steps)-1].Detail = "it answers"
	}
	return ids, true
}

// modelStatus explains an answer that is none.
func (e *exam) modelStatus(res *http.Response, body []byte) {
	text := fmt.Sprintf("HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &said); err == nil && said.Error.Message != "" {
		text += ": " + cut(oneLine(said.Error.Message), 300)
	} else if line := oneLine(strings.ToValidUTF8(string(body[:min(len(body), 1000)]), "�")); line != "" {
		text += ": " + cut(line, 300)
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.fail("auth", text, e.keyAdvice())
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.warn("http", text+"; it answers and has no list of models here: if it does not work, is \"baseUrl\" right?")
	case status == http.StatusTooManyRequests:
		e.warn("http", text)
	case status >= 500:
		e.fail("http", text, "it fails itself: try again later, or tell who runs it")
	case status >= 300 && status < 400:
		e.fail("http", text, `it sends you elsewhere: write that address as "baseUrl", if you trust it`)
	default:
		e.fail("http", text, `is "baseUrl" right?`)
	}
}
