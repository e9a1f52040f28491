package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/toolsearch"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Search offers three tools instead of all tools of a view: find_tools, describe_tool and call_tool.
// They keep nothing between requests. A host with a small window, or a model that loses its way among
// hundreds of tools, uses all of them so.
type Search struct {
	// Budget is the maximum number of bytes of a result of call_tool. A longer result is cut, and has
	// links to its rest, which resources/read returns in parts, for 10 minutes and to the same caller. The
	// rests are in the Memory of the view.
	// Zero means 32 KiB.
	Budget int

	indexes indexes
}

const (
	findTools    = "find_tools"
	describeTool = "describe_tool"
	callTool     = "call_tool"

	usualHits = 5
	mostHits  = 20
	maxPages  = 1000
	maxWords  = 200 // characters of a description among hits

	searchInstructions = "Find a tool with find_tools, read its arguments with describe_tool, and call it with call_tool."
)

// definitions are the three tools.
var definitions = json.RawMessage(`[` +
	`{"name":"find_tools","description":"Finds tools by what they do. There are more tools than these three: search before you say that something cannot be done.",` +
	`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"what the tool should do, in words"},"limit":{"type":"integer","minimum":1,"maximum":20,"description":"5 if not given"}},"required":["query"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"describe_tool","description":"Describes one tool in full: its arguments and result as JSON Schema.",` +
	`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"exactly as find_tools has it"}},"required":["name"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"call_tool","description":"Calls a tool that find_tools has found.",` +
	`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"exactly as find_tools has it"},"arguments":{"type":"object","description":"as describe_tool has them"}},"required":["name"]}}]`)

// SearchTools returns the list of the three tools.
func SearchTools() mcp.Result {
	return mcp.RawResult(jsonx.With(nil, []byte("{}"), "tools", definitions))
}

// middleware offers the three tools of a view, and keeps the rests of results.
func (s *Search) middleware(v *View, kept *rests) mcp.Middleware {
	refuse := v.refuse()
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case "tools/list":
				return SearchTools(), nil
			case "resources/read":
				if uri := unquoted(req.Param("uri")); strings.HasPrefix(uri, restScheme) {
					return kept.read(ctx, uri, s.budget())
				}
			case "tools/call":
				switch unquoted(req.Param("name")) {
				case findTools:
					return s.find(ctx, req, next)
				case describeTool:
					return s.describe(ctx, req, next, refuse)
				case callTool:
					return s.call(ctx, req, next, kept, refuse)
				}
			}
			return next.Handle(ctx, req)
		})
	}
}

func (s *Search) budget() int {
	if s.Budget == 0 {
		return 32 << 10
	}
	return s.Budget
}

// find answers find_tools.
func (s *Search) find(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	var in struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := decode(req, &in, "query"); err != nil {
		return failed(err), nil
	}
	x, err := s.index(ctx, next)
	if err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = usualHits
	}
	hits := x.words.Find(in.Query, min(max(in.Limit, 1), mostHits))
	if len(hits) == 0 {
		return said(fmt.Sprintf("No tool fits these words. Try others, or fewer; there are %d tools.", len(x.tools))), nil
	}
	var b strings.Builder
	for _, hit := range hits {
		t := &x.tools[hit.Tool]
		fmt.Fprintf(&b, "%s: %s\n", t.Name, text.Clip(oneLine(t.Description), maxWords))
		if len(t.arguments) > 0 {
			fmt.Fprintf(&b, "  arguments: %s\n", strings.Join(t.arguments, ", "))
		}
	}
	return said(b.String()), nil
}

// describe answers describe_tool, or returns the error of refuse for a tool that the view does not list.
func (s *Search) describe(ctx context.Context, req *mcp.Request, next mcp.Handler, refuse func(ctx context.Context, tool string) error) (mcp.Result, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(req, &in, "name"); err != nil {
		return failed(err), nil
	}
	x, err := s.index(ctx, next)
	if err != nil {
		return nil, err
	}
	t := x.tool(in.Name)
	if t == nil {
		return nil, refuse(ctx, in.Name)
	}
	return said(string(t.definition)), nil
}

// call answers call_tool: it passes the inner call on, or returns the error of refuse for a tool that the view does not list.
func (s *Search) call(ctx context.Context, req *mcp.Request, next mcp.Handler, kept *rests, refuse func(ctx context.Context, tool string) error) (mcp.Result, error) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := decode(req, &in, "name"); err != nil {
		return failed(err), nil
	}
	switch jsonx.KindOf(in.Arguments) {
	case '{':
	case 0, 'n':
		in.Arguments = json.RawMessage("{}")
	default:
		return failed(fmt.Errorf("%q must be an object with the arguments of %q", "arguments", text.Short(in.Name))), nil
	}
	x, err := s.index(ctx, next)
	if err != nil {
		return nil, err
	}
	if x.tool(in.Name) == nil {
		return nil, refuse(ctx, in.Name)
	}
	params := jsonx.With(nil, req.Params, "name", jsonx.AppendString(nil, in.Name))
	params = jsonx.With(nil, params, "arguments", in.Arguments)
	res, err := next.Handle(ctx, &mcp.Request{Method: req.Method, Params: params})
	if err != nil {
		return nil, err
	}
	return kept.shorten(ctx, in.Name, res, s.budget()), nil
}

// unknown is the error for a tool that the view does not list.
func unknown(name string) *mcp.Error {
	return mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q; names are those of find_tools, letter by letter", text.Short(name))
}

// decode decodes the arguments of one of the three tools, of which one must not be empty.
func decode(req *mcp.Request, in any, needed string) error {
	args := req.Param("arguments")
	if args == nil {
		args = json.RawMessage("{}")
	}
	if err := jsonx.Unmarshal(args, in); err != nil {
		return err
	}
	if v, _ := jsonx.Lookup(args, needed); unquoted(v) == "" {
		return fmt.Errorf("%q is needed", needed)
	}
	return nil
}

func failed(err error) mcp.Result {
	return &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text(err.Error())}}
}

func said(words string) mcp.Result {
	return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(strings.TrimRight(words, "\n"))}}
}

func unquoted(value json.RawMessage) string {
	s, _ := jsonx.Unquote(value)
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// tool is a tool of the handler.
type tool struct {
	toolsearch.Tool
	definition json.RawMessage
	arguments  []string // names
}

// index is what a list of tools is searched with. Its pages are known from the beginning, the rest after
// make.
type index struct {
	pages   [][]byte
	cursors []json.RawMessage // after each page, nil after the last

	once  sync.Once
	tools []tool
	names map[string]int
	words *toolsearch.Index
}

func (x *index) size() (sum int) {
	for _, page := range x.pages {
		sum += 4 * len(page) // with the words
	}
	return sum
}

func (x *index) tool(name string) *tool {
	if i, ok := x.names[name]; ok {
		return &x.tools[i]
	}
	return nil
}

// indexes keeps the indexes of the last lists: callers who see the same share one. The zero value is
// ready for use.
type indexes struct {
	mu   sync.Mutex
	last []*index // the newest first; guarded by mu
}

const maxIndexes = 8

// index returns the index of the tools that the caller sees now.
func (s *Search) index(ctx context.Context, next mcp.Handler) (*index, error) {
	x := new(index)
	params := json.RawMessage("{}")
	for range maxPages {
		res, err := next.Handle(ctx, &mcp.Request{Method: "tools/list", Params: params})
		if err != nil {
			return nil, err
		}
		page := res.JSON()
		cursor, known := s.indexes.cursor(len(x.pages), page)
		if !known {
			if cursor = lookup(page, "nextCursor"); jsonx.KindOf(cursor) != '"' {
				cursor = nil
			}
		}
		x.pages, x.cursors = append(x.pages, page), append(x.cursors, cursor)
		if cursor == nil {
			break
		}
		params = jsonx.With(nil, []byte("{}"), "cursor", cursor)
	}
	x = s.indexes.of(x)
	x.once.Do(x.make)
	return x, nil
}

// cursor returns the cursor after a page that is kept as the page of that number.
func (k *indexes) cursor(number int, page []byte) (cursor json.RawMessage, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.last {
		if number < len(x.pages) && bytes.Equal(x.pages[number], page) {
			return x.cursors[number], true
		}
	}
	return nil, false
}

// of returns the kept index with the pages of x, or keeps x.
func (k *indexes) of(x *index) *index {
	k.mu.Lock()
	defer k.mu.Unlock()
	same := func(y *index) bool { return slices.EqualFunc(x.pages, y.pages, bytes.Equal) }
	if i := slices.IndexFunc(k.last, same); i >= 0 {
		return toFront(k.last, i)
	}
	k.last = bounded(slices.Insert(k.last, 0, x), maxIndexes)
	return x
}

// make reads the pages.
func (x *index) make() {
	x.names = map[string]int{}
	var searched []toolsearch.Tool
	for _, page := range x.pages {
		list, _ := jsonx.Lookup(page, "tools")
		for def := range jsonx.Elements(list) {
			t := tool{definition: def}
			t.Name, _ = jsonx.Unquote(lookup(def, "name"))
			t.Description, _ = jsonx.Unquote(lookup(def, "description"))
			t.Title, _ = jsonx.Unquote(lookup(def, "title"))
			if t.Title == "" {
				t.Title, _ = jsonx.Unquote(lookup(lookup(def, "annotations"), "title"))
			}
			var about strings.Builder
			for name, schema := range jsonx.Members(lookup(lookup(def, "inputSchema"), "properties")) {
				t.arguments = append(t.arguments, string(name))
				described, _ := jsonx.Unquote(lookup(schema, "description"))
				fmt.Fprintf(&about, "%s %s\n", name, described)
			}
			t.Arguments = about.String()
			x.names[t.Name] = len(x.tools)
			x.tools = append(x.tools, t)
			searched = append(searched, t.Tool)
		}
	}
	x.words = toolsearch.New(searched)
}

func lookup(obj json.RawMessage, member string) json.RawMessage {
	v, _ := jsonx.Lookup(obj, member)
	return v
}
