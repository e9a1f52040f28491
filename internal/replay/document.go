package replay

import (
	"encoding/json"
	"strings"
)

// Document returns the report on the replay of a recording in a file as one JSON object. Values
// that differ are JSON in strings, because they may be cut.
func (r *Report) Document(file string, rec *Recording) ([]byte, error) {
	type difference struct {
		Path     string `json:"path"`
		Recorded string `json:"recorded,omitempty"`
		Now      string `json:"now,omitempty"`
	}
	type exchange struct {
		Line        int          `json:"line,omitempty"`
		Request     string       `json:"request"`
		Outcome     string       `json:"outcome"`
		Why         string       `json:"why,omitempty"`
		Differences []difference `json:"differences,omitempty"`
	}
	out := struct {
		Trace     string     `json:"trace"`
		Recorded  string     `json:"recordedRevision,omitempty"`
		Revision  string     `json:"revision"`
		Server    string     `json:"server"`
		Same      int        `json:"same"`
		Differ    int        `json:"differ"`
		Skipped   int        `json:"skipped"`
		Exchanges []exchange `json:"exchanges"`
	}{file, rec.Revision, r.Revision, strings.TrimSpace(r.Server.Name + " " + r.Server.Version), r.Same, r.Differ, r.Skipped, []exchange{}}
	for _, o := range r.Outcomes {
		e := exchange{Line: o.Line, Request: o.Label, Outcome: "same", Why: o.Skipped}
		if o.Skipped != "" {
			e.Outcome = "skipped"
		}
		for _, d := range o.Differences {
			e.Outcome = "differs"
			e.Differences = append(e.Differences, difference(d))
		}
		out.Exchanges = append(out.Exchanges, e)
	}
	return json.Marshal(out)
}
