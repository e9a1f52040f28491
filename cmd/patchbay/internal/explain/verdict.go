package explain

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/config/deploy"
)

func (r *rehearsal) decisions() []decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.decided)
}

func (w *Way) set(file string, line int) { w.File, w.Line = file, line }

// explain says what has decided about a call that ended with err.
func (r *rehearsal) explain(ctx context.Context, w *Way, v *deploy.View, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	file := filepath.Base(r.of.File.Path)
	if n := len(r.decided); n > 0 && v != nil {
		if last := r.decided[n-1]; !last.Allow && last.Rule == fmt.Sprintf("view %q", v.Name) {
			w.By, w.Rule = fmt.Sprintf("the view %q does not have it (%s)", v.Name, r.of.place("views."+v.Name+".tools")), last.Rule
			w.set(file, r.of.File.Problem("views."+v.Name+".tools", "", "").Line)
			return
		}
	}
	if n := len(r.asked); n > 0 {
		last := r.asked[n-1]
		of := verdict.Of(ctx, last.set, &last.Access)
		if of.Allowed == w.Allowed {
			w.By, w.Rule, w.Scopes = of.By(r.of.File.Policy), of.Rule, of.Scopes
			w.Why = of.Why()
			w.set(filepath.Base(r.of.File.Policy), of.Line())
			return
		}
	}
	switch {
	case w.Allowed:
		w.By = "as " + file + " has no policy"
	case v != nil && slices.ContainsFunc(v.Changes, func(c deploy.Change) bool { return c.Hidden && c.Tool == w.Name }):
		w.By = fmt.Sprintf("the view %q hides it (%s)", v.Name, r.of.place("views."+v.Name+".changes"))
		w.set(file, r.of.File.Problem("views."+v.Name+".changes", "", "").Line)
	case err != nil:
		w.By = "the caller gets: " + strings.TrimSpace(err.Error())
	default:
		w.By = "the gateway answers the call itself"
	}
}
