package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Script maps requests to answers. Turns are for one request each, in order. A request that does
// not fit the next turn is answered by the first rule that fits, any number of times: for
// concurrent conversations, and for requests without a fixed order.
type Script struct {
	Turns []Turn `yaml:"turns"`
	Rules []Turn `yaml:"rules"`

	// Answer answers requests that fit no turn and no rule; When of its turn is ignored. Calls do not
	// overlap. If nil, such a request is a fault.
	Answer func(*Request) Turn `yaml:"-"`
}

// Turn is a request and its answer.
type Turn struct {
	When   When    `yaml:"when"`
	Answer []Piece `yaml:"answer"`
	Stop   string  `yaml:"stop"` // "length", "text" or "refused"; empty: the answer is complete
	Usage  Usage   `yaml:"usage"`
	Fault  *Fault  `yaml:"fault"` // comes after Answer
}

// When is the condition of a turn. Texts are regular expressions that match a part. The zero
// value fits every request.
type When struct {
	Model   string            `yaml:"model"`
	System  string            `yaml:"system"`
	User    string            `yaml:"user"`    // the last text from the user
	Results map[string]string `yaml:"results"` // of the last calls, by tool
	Tools   []string          `yaml:"tools"`   // offered tools; others are allowed
	Choice  string            `yaml:"choice"`  // "none", "required" or the name of a tool
	Images  int               `yaml:"images"`  // since the last answer
	Length  int               `yaml:"length"`  // answers that came before
}

// Piece is a piece of an answer. One of its fields is set.
type Piece struct {
	Text     string `yaml:"text"`
	Thinking string `yaml:"thinking"`
	Call     *Call  `yaml:"call"`
}

// Call is a call that the model makes.
type Call struct {
	Name      string `yaml:"name"`
	Arguments any    `yaml:"arguments"` // a string is sent as it is, whether JSON or not
	id        string
}

// Usage is the token usage in an answer.
type Usage struct {
	Input  int64 `yaml:"input"` // cached tokens too
	Output int64 `yaml:"output"`
	Cached int64 `yaml:"cached"`
}

// Fault is a simulated failure.
type Fault struct {
	Status  int           `yaml:"status"`  // HTTP status instead of an answer
	After   time.Duration `yaml:"after"`   // retry time sent with a status
	Code    string        `yaml:"code"`    // of a status or event; empty: a likely one
	Message string        `yaml:"message"` // of a status or event
	Event   bool          `yaml:"event"`   // an error event
	Cut     bool          `yaml:"cut"`     // the connection ends
	Hang    bool          `yaml:"hang"`    // nothing more comes until the client disconnects
	Garbage bool          `yaml:"garbage"` // an event that is not JSON
	HTML    bool          `yaml:"html"`    // an HTML page instead of an answer
	Slow    time.Duration `yaml:"slow"`    // pause between the pieces of a complete answer
}

// Parse reads a script in YAML.
func Parse(data []byte) (*Script, error) {
	s := &Script{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	for i, t := range slices.Concat(s.Turns, s.Rules) {
		for _, expr := range append([]string{t.When.Model, t.When.System, t.When.User}, values(t.When.Results)...) {
			if _, err := regexp.Compile(expr); err != nil {
				return nil, fmt.Errorf("script: turn %d: %w", i+1, err)
			}
		}
		if len(t.Answer) == 0 && t.Fault == nil {
			return nil, fmt.Errorf("script: turn %d has neither an answer nor a fault", i+1)
		}
	}
	return s, nil
}

// MustParse reads a script, and panics if it is not valid.
func MustParse(text string) *Script {
	s, err := Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// Load reads a script from a file.
func Load(file string) (*Script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// unfit returns the reasons why a request does not fit, or "" if it fits.
func (w *When) unfit(r *Request) string {
	var why []string
	text := func(what, want, got string) {
		if !regexp.MustCompile(want).MatchString(got) {
			why = append(why, fmt.Sprintf("%s is %q, want %q", what, cut(got), want))
		}
	}
	text("the model", w.Model, r.Model)
	text("the system prompt", w.System, r.System)
	text("the last text of the user", w.User, r.User())
	results := r.Results()
	for tool, want := range w.Results {
		var got []string
		for _, res := range results {
			if res.Name == tool {
				got = append(got, res.Text)
			}
		}
		if !slices.ContainsFunc(got, regexp.MustCompile(want).MatchString) {
			why = append(why, fmt.Sprintf("the results of %s are %s, want one with %q", tool, cut(fmt.Sprintf("%q", got)), want))
		}
	}
	for _, tool := range w.Tools {
		if !slices.Contains(r.Tools, tool) {
			why = append(why, fmt.Sprintf("the tools are %q, want %q among them", r.Tools, tool))
		}
	}
	if w.Choice != "" && w.Choice != r.Choice {
		why = append(why, fmt.Sprintf("the choice of tools is %q, want %q", r.Choice, w.Choice))
	}
	if w.Images > 0 && w.Images != r.Images() {
		why = append(why, fmt.Sprintf("there are %d images, want %d", r.Images(), w.Images))
	}
	if n := r.answers(); w.Length > 0 && w.Length != n {
		why = append(why, fmt.Sprintf("there were %d answers, want %d", n, w.Length))
	}
	return strings.Join(why, "; ")
}

// arguments returns the text of the arguments of a call.
func (c *Call) arguments() string {
	switch a := c.Arguments.(type) {
	case nil:
		return "{}"
	case string:
		return a
	}
	text, err := json.Marshal(c.Arguments)
	if err != nil {
		return fmt.Sprint(c.Arguments)
	}
	return string(text)
}

func values(m map[string]string) []string {
	var all []string
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

func cut(s string) string { return text.Clip(s, 300) }
