package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// runModel asks a provider for its models, with the key.
func (e *Exam) runModel(ctx context.Context) {
	m := e.Model
	p := providers.Named(m.Provider)
	if _, missing := p.Home(os.Getenv); m.BaseURL == "" && missing != "" {
		e.Fail("address", missing+" is not set", "set "+missing+`, or give the model a "baseUrl"`)
		return
	}
	switch variable := m.KeyVariable(); {
	case m.Key != "":
		e.OK("key", e.keyFrom())
	case variable != "" && !p.Open:
		e.Fail("key", "missing, and "+variable+" is not set", "set "+variable+", or give the model a \"key\"")
		return
	default:
		e.OK("key", "none")
	}
	if !e.network(ctx) {
		return
	}
	ids, err := e.List(ctx)
	if err != nil {
		e.notListed(err)
		return
	}
	e.OK("http", "it answers and accepts the key")
	if m.Key == "" {
		e.steps[len(e.steps)-1].Detail = "it answers"
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

// notListed explains why there is no list of models.
func (e *Exam) notListed(err error) {
	var said *model.Error
	if !errors.As(err, &said) {
		e.Fail("http", screen.OneLine(err.Error()), `correct "baseUrl"`)
		return
	}
	text := screen.OneLine(said.Message)
	if said.Status != 0 {
		text = fmt.Sprintf("HTTP %d %s: %s", said.Status, http.StatusText(said.Status), text)
	}
	switch status := said.Status; {
	case said.Kind == model.NoKey:
		e.Fail("auth", text, e.keyAdvice())
	case said.Kind == model.Malformed:
		e.Warn("http", `it answers, but not with a list of models: check "baseUrl"`)
	case status == 0 && said.Kind == model.NoModel:
		e.Warn("http", text+": neither the key nor the name is checked")
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Warn("http", text+"; it answers, but has no list of models")
	case status == http.StatusTooManyRequests:
		e.Warn("http", text)
	case status == 0:
		e.Fail("http", text, `check "baseUrl", or try again; --timeout 3m waits longer`)
	case status >= 500:
		e.Fail("http", text, "try again later, or contact its operator")
	case status < 400:
		e.Fail("http", text, `set "baseUrl" to that address if you trust it`)
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
