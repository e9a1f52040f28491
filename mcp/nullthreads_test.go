package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/schema"
)

// threads are reports of calls that failed because a model or a client sent null for an optional
// argument: its tool, written in Go, and the arguments of the report.
var threads = []struct {
	name string
	add  func(s *mcp.Server, name string)
	args string
	want string // the arguments as the function sees them
	fit  string // the arguments as a host sends them to the server of somebody else
}{
	// An optional date is null for "no range".
	{"CodeWithCJ/SparkyFitness#1540", threadTool[struct {
		Action string `json:"action" enum:"get_biometrics_history,log"`
		Start  string `json:"start_date,omitempty" format:"date"`
		End    string `json:"end_date,omitempty" format:"date"`
	}], `{"action":"get_biometrics_history","start_date":null,"end_date":null}`,
		`{"action":"get_biometrics_history"}`, `{"action":"get_biometrics_history"}`},

	// Models read "optional" as "send null".
	{"danny-avila/LibreChat#11905", threadTool[struct {
		Query    string `json:"query"`
		Country  string `json:"country,omitempty" min:"2" max:"2"`
		Language string `json:"language,omitempty" enum:"en,de"`
	}], `{"query":"lakers scores","country":null,"language":null}`,
		`{"query":"lakers scores"}`, `{"query":"lakers scores"}`},

	// One argument may be null by its schema, which a client must not take away, and another may not.
	{"openclaw/openclaw#96729", threadTool[struct {
		Cluster  string  `json:"cluster_name"`
		Insight  *string `json:"insight_id" nullable:"true"`
		Category string  `json:"category,omitempty"`
	}], `{"cluster_name":"test-cluster","insight_id":null,"category":null}`,
		`{"cluster_name":"test-cluster","insight_id":null}`, `{"cluster_name":"test-cluster","insight_id":null}`},

	// A client writes all fields of its model of the arguments, in front of a server in Go.
	{"NVIDIA/NeMo-Agent-Toolkit#1269", threadTool[struct {
		Query string `json:"query"`
		After string `json:"after,omitempty"`
		Limit int    `json:"limit,omitzero" default:"50" max:"100"`
	}], `{"query":"authenticate","after":null,"limit":null}`,
		`{"query":"authenticate","limit":50}`, `{"query":"authenticate"}`},

	// An optional number.
	{"langflow-ai/langflow#8059", threadTool[struct {
		X     float64  `json:"x"`
		Y     float64  `json:"y"`
		Z     float64  `json:"z"`
		Range *float64 `json:"range,omitempty" min:"0"`
	}], `{"x":1,"y":64,"z":-3.5,"range":null}`,
		`{"x":1,"y":64,"z":-3.5}`, `{"x":1,"y":64,"z":-3.5}`},

	// An optional object and an optional number; null within an object too.
	{"grll/mcpadapt#38", threadTool[struct {
		Query   string         `json:"query"`
		Filters *threadFilters `json:"filters,omitempty"`
		Else    *threadFilters `json:"otherwise,omitempty"`
		Max     *int           `json:"maxResults,omitempty"`
	}], `{"query":"mcp","filters":{"site":null,"tags":null},"otherwise":null,"maxResults":null}`,
		`{"query":"mcp","filters":{}}`, `{"query":"mcp","filters":{}}`},
}

type threadFilters struct {
	Site string   `json:"site,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

// threadTool adds a tool that answers with its arguments.
func threadTool[In any](s *mcp.Server, name string) {
	mcp.AddTool(s, mcp.Tool{Name: name}, func(_ context.Context, in In) (string, error) {
		raw, err := json.Marshal(in)
		return string(raw), err
	})
}

// Each reported call works, on all revisions, with and without Server.Lenient, and a host in front of
// a strict server sends what that server accepts.
func TestNullThreads(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		t.Run(fmt.Sprintf("lenient=%t", lenient), func(t *testing.T) {
			newServer := func() *mcp.Server {
				s := &mcp.Server{Name: "threads", Version: "1", Lenient: lenient}
				for i, th := range threads {
					th.add(s, fmt.Sprint("tool", i))
				}
				return s
			}
			mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
				tools := map[string]*mcp.Tool{}
				for tool, err := range s.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					tools[tool.Name] = tool
				}
				for i, th := range threads {
					name := fmt.Sprint("tool", i)
					if res, err := s.CallTool(t.Context(), name, json.RawMessage(th.args)); err != nil || res.IsError || res.Text() != th.want {
						t.Errorf("%s: %s = %+v, %v, want %s", th.name, th.args, res, err, th.want)
					}
					check, err := schema.Compile(tools[name].InputSchema)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := check.Fit([]byte(th.args)); err != nil || string(got) != th.fit {
						t.Errorf("%s: Fit(%s) = %s, %v, want %s", th.name, th.args, got, err, th.fit)
					}
				}
				// Null for a required argument stays a fault.
				if res, err := s.CallTool(t.Context(), "tool1", json.RawMessage(`{"query":null}`)); err != nil || !res.IsError || res.Text() != "query: must be a string, got null" {
					t.Errorf("a required null = %+v, %v", res, err)
				}
			})
		})
	}
}
