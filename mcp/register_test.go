package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A feature that cannot work is refused when it is registered, with a text that names the feature,
// the fault and the cure (trap 19; TOOL-26-010, -013, -015, -016).
func TestRegistrationErrors(t *testing.T) {
	type none = struct{}
	type day struct {
		Day string `json:"day"`
	}
	toText := func(context.Context, none) (string, error) { return "", nil }
	ofDay := func(context.Context, day) (string, error) { return "", nil }
	untyped := func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil }
	suggest := func(context.Context, string, map[string]string) ([]string, error) { return nil, nil }
	object := json.RawMessage(`{"type":"object"}`)
	named := func(name string) func(*mcp.Server) {
		return func(s *mcp.Server) { mcp.AddTool(s, mcp.Tool{Name: name}, toText) }
	}
	handle := func(tool mcp.Tool, h func(context.Context, json.RawMessage) (*mcp.ToolResult, error)) func(*mcp.Server) {
		return func(s *mcp.Server) {
			if err := s.HandleTool(tool, h); err != nil {
				panic(err)
			}
		}
	}
	template := func(uri string) mcp.ResourceTemplate { return mcp.ResourceTemplate{Name: "n", URITemplate: uri} }
	tests := []struct {
		name     string
		register func(*mcp.Server)
		want     []string // parts of the error
	}{
		{"a tool without a name", named(""), []string{"has no name", "set Tool.Name"}},
		{"a space in the name", named("my tool"), []string{`AddTool "my tool"`, `' '`, "Tool.Title"}},
		{"a comma in the name", named("a,b"), []string{`','`}},
		{"a letter that is not ASCII", named("größe"), []string{`'ö'`}},
		{"a byte that is not UTF-8", named("a\xff"), []string{"character"}},
		{"a name that is too long", named(strings.Repeat("a", 129)), []string{"129 characters", "128"}},
		{"an untyped tool with a space in the name", handle(mcp.Tool{Name: "my tool"}, untyped), []string{`HandleTool "my tool"`, `' '`}},

		{"OnDetach without TaskSupport", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", Execution: mcp.ToolExecution{OnDetach: true}}, toText)
		}, []string{`"x"`, "Execution.OnDetach", "TaskOptional"}},
		{"In of string", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, string) (string, error) { return "", nil })
		}, []string{`"x"`, "string cannot hold", "use a struct"}},
		{"In of a list", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, []int) (string, error) { return "", nil })
		}, []string{"[]int cannot hold"}},
		{"In of time", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, *time.Time) (string, error) { return "", nil })
		}, []string{"time.Time cannot hold"}},
		{"In of string with a schema", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", InputSchema: object}, func(context.Context, string) (string, error) { return "", nil })
		}, []string{"string cannot hold"}},
		{"In of an interface with methods", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", InputSchema: object}, func(context.Context, fmt.Stringer) (string, error) { return "", nil })
		}, []string{"fmt.Stringer cannot hold"}},
		{"a field without a schema", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
		}, []string{`"x"`, "C", "chan int"}},
		{"Out of an interface with methods", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (fmt.Stringer, error) { return nil, nil })
		}, []string{`"x"`, "fmt.Stringer", "use any"}},
		{"Out of a function", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (func(), error) { return nil, nil })
		}, []string{`"x"`, "func()"}},
		{"an output schema for text", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", OutputSchema: object}, toText)
		}, []string{`"x"`, "string is never structured", "use a struct"}},
		{"an output schema that is none", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", OutputSchema: json.RawMessage(`7`)}, func(context.Context, none) (*mcp.ToolResult, error) { return nil, nil })
		}, []string{`"x"`, "output schema"}},
		{"a task support that does not exist", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", Execution: mcp.ToolExecution{TaskSupport: "always"}}, toText)
		}, []string{`"always"`, "TaskOptional"}},
		{"a nil function", func(s *mcp.Server) { mcp.AddTool[none, string](s, mcp.Tool{Name: "x"}, nil) }, []string{`AddTool "x"`, "the handler is nil"}},

		{"an untyped tool with a nil handler", handle(mcp.Tool{Name: "x"}, nil), []string{`HandleTool "x"`, "the handler is nil"}},
		{"a schema that is none", handle(mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":7}`)}, untyped), []string{`"x"`, "input schema"}},
		{"a schema for strings", handle(mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"string"}`)}, untyped), []string{`"x"`, `{"type":"string"}`, `"type": "object"`}},
		{"a schema for objects and null", handle(mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":["object","null"]}`)}, untyped), []string{`"type": "object"`}},
		{"a schema for everything", handle(mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{}`)}, untyped), []string{`"type": "object"`}},
		{"a schema that is a boolean", handle(mcp.Tool{Name: "x", InputSchema: json.RawMessage(`true`)}, untyped), []string{`"type": "object"`}},
		{"an untyped output schema that is none", handle(mcp.Tool{Name: "x", OutputSchema: json.RawMessage(`[]`)}, untyped), []string{`"x"`, "output schema"}},

		{"a prompt without a name", func(s *mcp.Server) { mcp.AddPrompt(s, mcp.Prompt{}, toText) }, []string{"has no name"}},
		{"a prompt with a nil function", func(s *mcp.Server) { mcp.AddPrompt[none, string](s, mcp.Prompt{Name: "p"}, nil) }, []string{`AddPrompt "p"`, "nil"}},
		{"a prompt with an argument that is not text", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(context.Context, struct{ N int }) (string, error) { return "", nil })
		}, []string{`"p"`, `"N"`, "use string"}},
		{"a prompt that describes an argument that is not text", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p", Arguments: []mcp.PromptArgument{{Name: "N"}}}, func(context.Context, struct{ N int }) (string, error) { return "", nil })
		}, []string{`"N"`}},
		{"a prompt with an argument without a field", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p", Arguments: []mcp.PromptArgument{{Name: "day"}, {Name: "hour"}}}, ofDay)
		}, []string{`"p"`, `"hour" has no field`, `json:"hour"`}},
		{"a prompt with a required field without an argument", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p", Arguments: []mcp.PromptArgument{}}, ofDay)
		}, []string{`"day"`, "required", "omitempty"}},
		{"a prompt that completes what it does not have", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p", Complete: map[string]mcp.CompleteFunc{"hour": suggest}}, ofDay)
		}, []string{`"hour"`, `"day"`}},
		{"a prompt with a nil completion", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p", Complete: map[string]mcp.CompleteFunc{"day": nil}}, ofDay)
		}, []string{`"day"`, "nil"}},
		{"a prompt with In of string", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(context.Context, string) (string, error) { return "", nil })
		}, []string{`"p"`, "struct"}},
		{"a prompt that returns a struct", func(s *mcp.Server) {
			mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(context.Context, none) (point, error) { return point{}, nil })
		}, []string{`"p"`, "point", "[]PromptMessage"}},

		{"a resource without a scheme", func(s *mcp.Server) {
			mcp.AddResource(s, mcp.Resource{Name: "n", URI: "notes"}, func(context.Context) (string, error) { return "", nil })
		}, []string{`"notes"`, "app:notes"}},
		{"a resource with a nil function", func(s *mcp.Server) { mcp.AddResource[string](s, mcp.Resource{Name: "n", URI: "a:b"}, nil) }, []string{`"a:b"`, "nil"}},
		{"a resource that returns content of tools", func(s *mcp.Server) {
			mcp.AddResource(s, mcp.Resource{Name: "n", URI: "a:b"}, func(context.Context) (mcp.Content, error) { return nil, nil })
		}, []string{`"a:b"`, "mcp.Content", "ResourceContents"}},
		{"a resource that returns an interface with methods", func(s *mcp.Server) {
			mcp.AddResource(s, mcp.Resource{Name: "n", URI: "a:b"}, func(context.Context) (io.Reader, error) { return nil, nil })
		}, []string{`"a:b"`, "io.Reader"}},

		{"a template that is none", func(s *mcp.Server) { mcp.AddResourceTemplate(s, template("a:{b"), toText) }, []string{`"a:{b"`}},
		{"a template with a nil function", func(s *mcp.Server) { mcp.AddResourceTemplate[day, string](s, template("a:{day}"), nil) }, []string{`"a:{day}"`, "nil"}},
		{"a variable without a field", func(s *mcp.Server) { mcp.AddResourceTemplate(s, template("a:{day}/{hour}"), ofDay) }, []string{`"a:{day}/{hour}"`, "{hour}", `json:"hour"`}},
		{"a variable in other capitals", func(s *mcp.Server) { mcp.AddResourceTemplate(s, template("a:{Day}"), ofDay) }, []string{"{Day}"}},
		{"a required field without a variable", func(s *mcp.Server) { mcp.AddResourceTemplate(s, template("a:all"), ofDay) }, []string{`"day"`, "{day}", "omitempty"}},
		{"a variable that is an object", func(s *mcp.Server) {
			mcp.AddResourceTemplate(s, template("a:{p}"), func(context.Context, struct {
				P point `json:"p"`
			}) (string, error) {
				return "", nil
			})
		}, []string{"{p}", "object"}},
		{"a template with In of string", func(s *mcp.Server) {
			mcp.AddResourceTemplate(s, template("a:{day}"), func(context.Context, string) (string, error) { return "", nil })
		}, []string{"string cannot hold", "struct"}},
		{"a template that completes what it does not have", func(s *mcp.Server) {
			r := template("a:{day}")
			r.Complete = map[string]mcp.CompleteFunc{"hour": suggest}
			mcp.AddResourceTemplate(s, r, ofDay)
		}, []string{`"hour"`, `"day"`}},

		{"a nil method of an extension", func(s *mcp.Server) { s.HandleMethod("example/list", nil) }, []string{`"example/list"`, "nil"}},
		{"a nil middleware", func(s *mcp.Server) { s.Use(nil) }, []string{"middleware 0 is nil"}},
		{"middleware after the start", func(s *mcp.Server) {
			_, _ = s.Handle(context.Background(), &mcp.Request{Method: "ping"})
			s.Use(func(next mcp.Handler) mcp.Handler { return next })
		}, []string{"Server.Use", "serving has started"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				for _, part := range append(tt.want, "mcp: ") {
					if !strings.Contains(text, part) {
						t.Errorf("the panic is %q, want it to say %q", text, part)
					}
				}
			}()
			tt.register(&mcp.Server{Name: "s", Version: "1"})
		})
	}
}

// Unusual features that work are accepted.
func TestRegistrationAllows(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1"}
	for _, name := range []string{"a", "admin.tools/list", "DATA_EXPORT-v2", "7", strings.Repeat("a", 128)} {
		mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	mcp.AddTool(s, mcp.Tool{Name: "raw"}, func(context.Context, json.RawMessage) (mcp.Content, error) { return nil, nil })
	mcp.AddTool(s, mcp.Tool{Name: "map"}, func(context.Context, map[string]any) (any, error) { return nil, nil })
	mcp.AddTool(s, mcp.Tool{Name: "any"}, func(context.Context, any) (*mcp.ToolResult, error) { return nil, nil })
	mcp.AddTool(s, mcp.Tool{Name: "pointer"}, func(context.Context, *point) ([]*point, error) { return nil, nil })
	mcp.AddPrompt(s, mcp.Prompt{Name: "content"}, func(context.Context, map[string]string) (mcp.Content, error) { return mcp.Text("x"), nil })
	mcp.AddResource(s, mcp.Resource{Name: "n", URI: "a:b"}, func(context.Context) (any, error) { return 1, nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{Name: "n", URITemplate: "m:{a}/{b}"}, func(context.Context, map[string]string) (string, error) { return "", nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{Name: "n", URITemplate: "o:{a}"}, func(context.Context, struct {
		A string `json:"a"`
		B string `json:"b,omitempty"`
	}) (string, error) {
		return "", nil
	})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// Variables of a URI template become what their fields are: numbers, booleans and lists too.
func TestTemplateVariables(t *testing.T) {
	type in struct {
		ID    int      `json:"id"`
		Price float64  `json:"price,omitempty"`
		On    bool     `json:"on,omitempty"`
		Tags  []string `json:"tags,omitempty"`
		Sizes []int    `json:"sizes,omitempty"`
		Text  string   `json:"text,omitempty"`
	}
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{Name: "n", URITemplate: "i:{id}/{price}/{on}/{tags}/{sizes}/{text}"}, func(_ context.Context, in in) (string, error) {
		return fmt.Sprintf("%+v", in), nil
	})
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{Name: "n", URITemplate: "m:{id}"}, func(_ context.Context, in map[string]int) (string, error) {
		return fmt.Sprint(in), nil
	})
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		c := mcptest.Connect(t, s, nothing(), rev)
		for uri, want := range map[string]string{
			"i:7/2.5/true/a,b/1,2/12": "{ID:7 Price:2.5 On:true Tags:[a b] Sizes:[1 2] Text:12}",
			"i:-7/1e2/false/a/1/true": "{ID:-7 Price:100 On:false Tags:[a] Sizes:[1] Text:true}",
			"m:9007199254740993":      "map[id:9007199254740993]",
			"i:x/1/true/a/1/t":        "error: id: must be an integer, got string",
			"i:1/1/yes/a/1/t":         "error: on: must be true or false, got string",
			"i:1/1/true/a/1,b/t":      "error: sizes[1]: must be an integer, got string",
			"i:%201/1/true/a/1/t":     "error: id: must be an integer, got string",
			"m:7,8":                   "error: id: must be an integer, got array",
		} {
			res, err := c.ReadResource(t.Context(), uri)
			if wrong, bad := strings.CutPrefix(want, "error: "); bad {
				var rpc *mcp.Error
				if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, wrong) || rpc.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("%s = %v, %v; want the error %q", uri, res, err, wrong)
				}
				continue
			}
			if err != nil || res.Contents[0].Text != want {
				t.Errorf("%s = %v, %v; want %s", uri, res, err, want)
			}
		}
	})
}

// A list of blocks of one type is content, as a list of Content is.
func TestListsOfContent(t *testing.T) {
	type none = struct{}
	s := &mcp.Server{Name: "s", Version: "1"}
	image := mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}
	mcp.AddTool(s, mcp.Tool{Name: "images"}, func(context.Context, none) ([]mcp.ImageContent, error) { return []mcp.ImageContent{image, image}, nil })
	mcp.AddTool(s, mcp.Tool{Name: "array"}, func(context.Context, none) ([2]mcp.ImageContent, error) {
		return [2]mcp.ImageContent{image, image}, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "any"}, func(context.Context, none) (any, error) { return []mcp.ImageContent{image, image}, nil })
	mcp.AddTool(s, mcp.Tool{Name: "none"}, func(context.Context, none) ([]mcp.ImageContent, error) { return nil, nil })
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		c := mcptest.Connect(t, s, nothing(), rev)
		for tool, n := range map[string]int{"images": 2, "array": 2, "any": 2, "none": 0} {
			res, err := c.CallTool(t.Context(), tool, nil)
			if err != nil || len(res.Content) != n || res.Structured != nil {
				t.Errorf("%s = %+v, %v; want %d images", tool, res, err, n)
				continue
			}
			for _, block := range res.Content {
				if got, ok := block.(mcp.ImageContent); !ok || got.MIMEType != "image/png" {
					t.Errorf("%s has the block %#v", tool, block)
				}
			}
		}
		for tool, err := range c.Tools(t.Context()) {
			if err != nil || tool.OutputSchema != nil {
				t.Errorf("%v has the output schema %s, %v", tool.Name, tool.OutputSchema, err)
			}
		}
	})
}

// Check, and every method that serves, returns the faults in the fields of a server.
func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		server mcp.Server
		want   string
	}{
		{"an unknown revision", mcp.Server{Revisions: []mcp.Revision{"2020-01-01"}}, "2026-07-28"},
		{"a revision twice", mcp.Server{Revisions: []mcp.Revision{mcp.V2026_07_28, mcp.V2026_07_28}}, "each once"},
		{"no revision", mcp.Server{Revisions: []mcp.Revision{}}, ""},
		{"a short key", mcp.Server{State: mcp.StateConfig{Keys: [][]byte{make([]byte, 32), make([]byte, 5)}}}, "state key 1 has 5 bytes"},
		{"a negative time to answer", mcp.Server{State: mcp.StateConfig{TTL: -1}}, "State.TTL is negative"},
		{"an extension without a prefix", mcp.Server{Extensions: map[string]json.RawMessage{"audit": json.RawMessage(`{}`)}}, `"audit"`},
		{"a host with a scheme", mcp.Server{HTTP: mcp.HTTPConfig{AllowedHosts: []string{"https://mcp.example.com"}}}, "without scheme"},
		{"every host", mcp.Server{HTTP: mcp.HTTPConfig{AllowedHosts: []string{"*"}}}, `"*"`},
		{"an origin without a scheme", mcp.Server{HTTP: mcp.HTTPConfig{AllowedOrigins: []string{"app.example.com"}}}, "https://app.example.com"},
		{"an origin with a path", mcp.Server{HTTP: mcp.HTTPConfig{AllowedOrigins: []string{"https://app.example.com/"}}}, "without a path"},
		{"good origins", mcp.Server{HTTP: mcp.HTTPConfig{AllowedOrigins: []string{"*", "null", "https://[::1]:8080", "vscode-webview://x"}, AllowedHosts: []string{"a.example", "a.example:8080", "[::1]:7"}}}, ""},
		{"a negative limit", mcp.Server{Limits: mcp.Limits{PageSize: -1}}, "Limits.PageSize is negative"},
		{"no bound where one may be left out", mcp.Server{Limits: mcp.Limits{CallTimeout: -1, Cache: -1}, HTTP: mcp.HTTPConfig{KeepAlive: -1}}, ""},
	}
	for i := range tests {
		tt := &tests[i]
		t.Run(tt.name, func(t *testing.T) {
			s := &tt.server
			s.Name = "s"
			fits := func(where, got string) {
				if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
					t.Errorf("%s says %q, want %q", where, got, tt.want)
				}
			}
			err := s.Check()
			if err == nil {
				fits("Check", "")
				return
			}
			fits("Check", err.Error())
			near, far := jsonrpc.Pipe()
			defer near.Close()
			fits("Serve", fmt.Sprint(s.Serve(t.Context(), far)))
			_, err = s.Handle(t.Context(), &mcp.Request{Method: "ping"})
			fits("Handle", fmt.Sprint(err))
			for where, h := range map[string]http.Handler{"ServeHTTP": s, "SSE": s.SSE("/m"), "WebSocket": s.WebSocket()} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost/mcp", nil))
				fits(where, w.Body.String())
				if w.Code != http.StatusInternalServerError {
					t.Errorf("%s answers %d", where, w.Code)
				}
			}
		})
	}
	s := &mcp.Server{Name: "s"}
	s.Use(func(mcp.Handler) mcp.Handler { return nil })
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "middleware 0 returned no Handler") {
		t.Errorf("Check of a middleware without a Handler = %v", err)
	}
}

// A server cannot have both a Handler and features, which nobody could reach.
func TestHandlerBesideFeatures(t *testing.T) {
	const want = "Server.Handler answers all requests, so"
	answer := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult(`{}`), nil })
	word := func(context.Context, struct{}) (string, error) { return "", nil }
	raw := func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil }
	for what, add := range map[string]func(*mcp.Server) error{
		"tool":         func(s *mcp.Server) error { mcp.AddTool(s, mcp.Tool{Name: "x"}, word); return nil },
		"untyped tool": func(s *mcp.Server) error { return s.HandleTool(mcp.Tool{Name: "x"}, raw) },
		"prompt":       func(s *mcp.Server) error { mcp.AddPrompt(s, mcp.Prompt{Name: "x"}, word); return nil },
		"resource": func(s *mcp.Server) error {
			mcp.AddResource(s, mcp.Resource{Name: "x", URI: "x:y"}, func(context.Context) (string, error) { return "", nil })
			return nil
		},
		"template": func(s *mcp.Server) error {
			mcp.AddResourceTemplate(s, mcp.ResourceTemplate{Name: "x", URITemplate: "x:y"}, word)
			return nil
		},
		"method": func(s *mcp.Server) error { s.HandleMethod("example/x", answer); return nil },
	} {
		s := &mcp.Server{Name: "s"}
		if err := add(s); err != nil {
			t.Fatal(err)
		}
		s.Handler = answer
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check with a %s = %v", what, err)
		}
		if _, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a request with a %s: %v", what, err)
		}
		err := func() (err error) {
			defer func() {
				if e, ok := recover().(error); ok {
					err = e
				}
			}()
			return add(&mcp.Server{Name: "s", Handler: answer})
		}()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("adding a %s = %v", what, err)
		}
	}
	s := &mcp.Server{Name: "s", Handler: answer}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
