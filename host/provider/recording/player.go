package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/host/model"
)

// NotRecorded is the kind of the [model.Error] of a request that a recording has no answer for.
const NotRecorded model.Kind = "not recorded"

const (
	maxText = 8 << 10  // bytes of a text in a request that is compared itself, not by its hash
	maxFile = 1 << 30  // bytes of a recording
	maxLine = 96 << 20 // of an answer as JSON
)

// Player is an [http.RoundTripper] that answers from a recording. Its methods may be called from any goroutine.
type Player struct {
	o    Options
	name string // of the file
	all  []*recorded

	mu      sync.Mutex
	similar int // guarded by mu
}

// recorded is an exchange of a recording.
type recorded struct {
	exchange
	exact, alike string // what requests are found by
	used         int    // answers given; guarded by the mutex of the Player
}

// Open reads a recording.
func Open(path string, o Options) (*Player, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the recording of a model: %w", err)
	}
	defer f.Close()
	p := &Player{o: o, name: filepath.Base(path)}
	lines := bufio.NewScanner(io.LimitReader(f, maxFile))
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if n == 1 {
			var h header
			if json.Unmarshal(line, &h) != nil || h.Recording != "model" {
				return nil, fmt.Errorf("%s is not a recording of a model; eval --record-model makes one", path)
			}
			if h.Version != 1 {
				return nil, fmt.Errorf("%s has version %d, which a newer program has written; this one knows version 1", path, h.Version)
			}
			continue
		}
		r := new(recorded)
		if err := json.Unmarshal(line, &r.exchange); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		r.exact, r.alike = keys(&r.exchange)
		p.all = append(p.all, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	if len(p.all) == 0 {
		return nil, fmt.Errorf("%s has no answers", path)
	}
	return p, nil
}

// Similar returns how many requests got the answer of one that differs in results of tools.
func (p *Player) Similar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.similar
}

// Unused returns how many of the recorded answers were not given.
func (p *Player) Unused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, r := range p.all {
		if r.used == 0 {
			n++
		}
	}
	return n
}

// RoundTrip answers a request. The error is a [model.Error] of the kind NotRecorded.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	x := &exchange{Method: req.Method, Path: req.URL.Path, Request: requestOf(&p.o, body)}
	r := p.find(x)
	switch {
	case r != nil:
		x = &r.exchange
	case req.Method == http.MethodGet: // a question about the model that a program can do without
		x.Status, x.Type = http.StatusNotFound, "text/plain"
	default:
		var asked struct{ Model string }
		_ = json.Unmarshal(x.Request, &asked) // the name is for people
		return nil, &model.Error{Kind: NotRecorded, Model: asked.Model, Message: fmt.Sprintf("%s has no answer to this request%s; record it again", p.name, p.nearest(x))}
	}
	return &http.Response{
		Status: strconv.Itoa(x.Status) + " " + http.StatusText(x.Status), StatusCode: x.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {x.Type}}, Body: io.NopCloser(strings.NewReader(x.Response)), ContentLength: int64(len(x.Response)), Request: req,
	}, nil
}

// find returns the exchange that answers a request: of those with the same request, or else an alike one, the first of
// those that were used least.
func (p *Player) find(x *exchange) *recorded {
	exact, alike := keys(x)
	p.mu.Lock()
	defer p.mu.Unlock()
	least := func(fits func(*recorded) bool) (found *recorded) {
		for _, r := range p.all {
			if fits(r) && (found == nil || r.used < found.used) {
				found = r
			}
		}
		return found
	}
	r := least(func(r *recorded) bool { return r.exact == exact })
	if r == nil {
		if r = least(func(r *recorded) bool { return r.alike == alike }); r != nil {
			p.similar++
		}
	}
	if r != nil {
		r.used++
	}
	return r
}

// keys returns what the same requests have in common, and what those have that differ in results of tools alone.
func keys(x *exchange) (exact, alike string) {
	begin := x.Method + " " + x.Path + "\n"
	v := decoded(x.Request)
	raw, _ := encode(v)
	bare, _ := encode(withoutResults(v))
	return begin + string(raw), begin + string(bare)
}

func decoded(raw json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v) // of a file that somebody has edited: compared as null
	return v
}

// shortened returns a JSON value with long texts as their hashes.
func shortened(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > maxText {
			sum := sha256.Sum256([]byte(v))
			return fmt.Sprintf("%d bytes, sha256:%s", len(v), hex.EncodeToString(sum[:]))
		}
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortened(v[name])
		}
	}
	return v
}

// withoutResults returns a request without the results of tools, in any of the APIs.
func withoutResults(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutResults(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = withoutResults(v[name])
		}
		if v["role"] == "tool" || v["type"] == "tool_result" { // Chat Completions, Messages
			out["content"] = ""
		}
		if v["type"] == "function_call_output" { // Responses
			out["output"] = ""
		}
		return out
	}
	return v
}

// nearest says in what a request differs from the one of the recording that is most like it.
func (p *Player) nearest(x *exchange) string {
	best, at := -1, ""
	now := decoded(x.Request)
	for _, r := range p.all {
		if r.Method != x.Method || r.Path != x.Path {
			continue
		}
		path, same := difference("", decoded(r.Request), now)
		if same > best {
			best, at = same, path
		}
	}
	if best < 0 {
		return ": nothing was recorded at " + x.Path
	}
	return ": the nearest one differs in " + at
}

// difference returns the place of the first difference between two JSON values, and how much of them is the same: the texts and
// numbers before it.
func difference(path string, a, b any) (at string, same int) {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok {
			return cmp.Or(path, "the body"), 0
		}
		for i := range min(len(a), len(b)) {
			place := fmt.Sprintf("%s[%d]", path, i)
			if reflect.DeepEqual(a[i], b[i]) {
				same += leaves(a[i])
				continue
			}
			at, n := difference(place, a[i], b[i])
			return at, same + n
		}
		return fmt.Sprintf("the length of %s", cmp.Or(path, "the body")), same
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return cmp.Or(path, "the body"), 0
		}
		for _, name := range slices.Sorted(maps.Keys(a)) {
			if reflect.DeepEqual(a[name], b[name]) {
				same += leaves(a[name])
			}
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !reflect.DeepEqual(a[name], b[name]) {
				place := strings.TrimPrefix(path+"."+name, ".")
				at, n := difference(place, a[name], b[name])
				return at, same + n
			}
		}
	}
	return cmp.Or(path, "the body"), same
}

// leaves counts the texts and numbers of a JSON value.
func leaves(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += leaves(e)
		}
		return n
	case map[string]any:
		for _, e := range v {
			n += leaves(e)
		}
		return n
	}
	return 1
}
