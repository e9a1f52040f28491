package trace_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/trace"
)

// LOG-26-008: credentials and secrets stay out of what is recorded.
func TestRedactMessage(t *testing.T) {
	const r = `"[redacted]"`
	tests := []struct{ name, in, want string }{
		{"nothing to do", `{"id":1,"progressToken":"t","text":"the token: a word"}`, `{"id":1,"progressToken":"t","text":"the token: a word"}`},
		{"spellings", `{"api_key":"hunter2","apiKey":"hunter2","API-KEY":"hunter2"}`, `{"api_key":` + r + `,"apiKey":` + r + `,"API-KEY":` + r + `}`},
		{"escaped name", `{"pass\u0077ord":"hunter2"}`, `{"pass\u0077ord":` + r + `}`},
		{"numbers, not literals", `{"secret":1234,"token":null,"password":true}`, `{"secret":` + r + `,"token":null,"password":true}`},
		{"whole subtree", `{"secret":{"a":["hunter2",{"b":7}]},"c":1}`, `{"secret":{"a":[` + r + `,{"b":` + r + `}]},"c":1}`},
		{"white space stays", `{ "token" : "hunter2" , "a" : 1 }`, `{ "token" : ` + r + ` , "a" : 1 }`},
		{"schema of a secret", `{"properties":{"password":{"type":"string","title":"Password"},"token":{}}}`, `{"properties":{"password":{"type":"string","title":"Password"},"token":{}}}`},
		{"properties that are no schema", `{"properties":{"password":"hunter2","token":{"value":"hunter2"}}}`, `{"properties":{"password":` + r + `,"token":{"value":` + r + `}}}`},
		{"schema inside a secret", `{"secret":{"properties":{"token":{"type":"hunter2"}}}}`, `{"secret":{"properties":{"token":{"type":` + r + `}}}}`},
		{"JSON as text", `{"text":"{\"token\":\"hunter2\",\"a\":[1]}"}`, `{"text":"{\"token\":\"[redacted]\",\"a\":[1]}"}`},
		{"JSON as text, cut", `{"text":"{\"token\":\"hunter2\",\"a\":[1"}`, `{"text":"{\"token\":[redacted],\"a\":[1"}`},
		{"query of a URL", `{"url":"https://me:hunter2@example.com/cb?code=1&access_token=hunter2#id_token=hunter2"}`,
			`{"url":"https://[redacted]@example.com/cb?code=1&access_token=[redacted]#id_token=[redacted]"}`},
		{"basic in prose", `{"text":"curl -H 'Authorization: Basic aHVudGVyMg==' and basic telecommunications","x-api-key":"hunter2","Cookie":"a=hunter2"}`,
			`{"text":"curl -H 'Authorization: Basic [redacted]' and basic telecommunications","x-api-key":"[redacted]","Cookie":"[redacted]"}`},
		{"bearer in prose", `{"text":"curl -H 'Authorization: Bearer hunter2hunter2hunter2' and the bearer of news"}`,
			`{"text":"curl -H 'Authorization: Bearer [redacted]' and the bearer of news"}`},
		{"bearer in capitals", `{"text":"AUTHORIZATION: BEARER hunter2hunter2hunter2"}`, `{"text":"AUTHORIZATION: BEARER [redacted]"}`},
		{"batch", `[{"token":"hunter2"},{"token":"hunter2"}]`, `[{"token":` + r + `},{"token":` + r + `}]`},
	}
	red := trace.NewRedactor(nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			got := red.Frame(trace.Frame{Dir: trace.In, Msg: in})
			if string(got.Msg) != tt.want {
				t.Errorf("redacted\n%s to\n%s, want\n%s", tt.in, got.Msg, tt.want)
			}
			if string(in) != tt.in {
				t.Error("the original was changed")
			}
		})
	}
}

// LOG-26-008: a secret beside its name is redacted, and ordinary data in the same form is not.
func TestRedactPairs(t *testing.T) {
	red := trace.NewRedactor(nil)
	for _, secret := range []string{
		`[{"name":"X-Api-Key","value":"hunter2"}]`, `{"key":"password","value":"hunter2"}`, `{"header":"Authorization","value":"hunter2"}`,
		`{"value":"hunter2","name":"X-Api-Key"}`, `{"value":{"a":["hunter2"]},"enabled":true,"Key":"api_key"}`, `{"name":"GITHUB_TOKEN","value":12345,"v":"hunter2"}`,
		`{"key":"X-Goog-Api-Key","values":["hunter2"]}`, `{"name":"x","key":"token","value":"hunter2"}`, `{"n\u0061me":"password","value":"hunter2"}`,
		strings.Repeat(`{"value":`, 40) + `"hunter2"` + strings.Repeat(`,"name":"token"}`, 40),
		`["Authorization","Bearer hunter2"]`, `[["Accept","*/*"],["Cookie","a=hunter2"]]`, `{"form":[["user","ada"],["password","hunter2"]]}`, `[ "X-Api-Key" , "hunter2" ]`,
		`{"rawHeaders":["Host","x","Authorization","hunter2","Accept","*/*"]}`, `{"headers":["Accept","*/*","X-Api-Key","hunter2"]}`,
		`{"args":["server","--api-key","hunter2"]}`, `{"args":["--api-key=hunter2"]}`,
		`{"a":"Cookie: a=hunter2; b=hunter2"}`, `["Host: x","cookie: a=hunter2"]`, `{"a":"GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: hunter2\r\n\r\n"}`,
		`{"a":"curl -H 'Cookie: a=hunter2' -H \"X-Auth-Token: hunter2\" x"}`, `{"a":"Authorization: token hunter2"}`, `{"a":"db:\n  password: hunter2\n"}`,
		`["API_KEY=hunter2","PATH=/bin"]`, `{"a":"export GITHUB_TOKEN=hunter2\nPATH=/bin"}`, `{"a":"API_KEY=hunter2 with spaces hunter2"}`, `{"a":"password=hunter2&user=ada"}`,
		`{"headers":{"Authorization":["hunter2","hunter2"],"X-Goog-Api-Key":["hunter2"],"Mcp-Session-Id":"hunter2"}}`, `{"env":{"DB_PASSWORD":"hunter2"}}`,
		`{"url":"https://x/login?to=https%3A%2F%2Fy%2F%3Ftoken%3Dhunter2%26b%3D1&c=1"}`, `{"url":"https://x/?api%5Fkey=hunter2&c=1"}`, `{"url":"https://x/?to=%252F%253Ftoken%253Dhunter2"}`,
		`{"text":"[{\"value\":\"hunter2\",\"name\":\"X-Api-Key\"}]"}`,
	} {
		f := red.Frame(trace.Frame{Dir: trace.In, Msg: []byte(secret)})
		if strings.Contains(string(f.Msg), "hunter2") || f.Raw != nil || !json.Valid(f.Msg) {
			t.Errorf("%s is redacted to %s", secret, f.Append(nil))
		}
		if again := red.Frame(trace.Frame{Dir: trace.In, Msg: f.Msg}); !bytes.Equal(again.Msg, f.Msg) {
			t.Errorf("%s is redacted to %s, and then to %s", secret, f.Msg, again.Msg)
		}
	}
	for _, plain := range []string{
		`{"name":"city","value":"Rome"}`, `{"key":"color","value":7}`, `{"value":"Rome"}`, `[{"value":1,"name":"temperature"}]`, `{"name":"get_token","arguments":{"q":"Rome"}}`,
		`{"name":"token","description":"The token","required":true}`, `{"method":"tools/call","params":{"name":"search","arguments":{"name":"city","default":"Rome"}}}`,
		`{"required":["authorization","city"]}`, `{"required":["token","city"]}`, `{"enum":["cookie","cake"]}`, `{"allowed_headers":["Authorization","Accept"]}`, `["cake","Rome"]`,
		`[["city","Rome"],["name","Ada"]]`, `["--city","Rome"]`, `{"a":"city: Rome"}`, `{"a":"time: 10:30:00"}`, `{"a":"Args:\n  token: string\n  password: string, optional"}`,
		`{"a":"Authorization: Bearer token is required"}`, `{"a":"Cookie: the name of a small cake"}`, `{"a":"city=Rome&country=Italy"}`, `{"a":"PATH=/bin"}`, `{"a":"it's a password: really"}`,
		`{"a":"token://x/y"}`, `{"url":"https://x/?to=https%3A%2F%2Fy%2F%3Fcity%3DRome"}`, `{"env":{"PATH":"/bin"},"headers":{"Accept":"*/*"}}`, `{"headers":{"type":"object","properties":{"X-Api-Key":{"type":"string"}}}}`,
		`{"uri":"file:///secret/token"}`,
	} {
		if f := red.Frame(trace.Frame{Dir: trace.In, Msg: []byte(plain)}); string(f.Msg) != plain {
			t.Errorf("%s is redacted to %s", plain, f.Append(nil))
		}
	}
}

// Values before their names, at any depth, take time in proportion to their length.
func TestRedactDeepPairs(t *testing.T) {
	long.WithoutRace(t)
	const depth = 9000
	msg := []byte(strings.Repeat(`{"value":`, depth) + `"x"` + strings.Repeat(`,"name":"city"}`, depth))
	for range 5 {
		trace.NewRedactor(nil).Frame(trace.Frame{Msg: msg})
	}
}

func TestRedactHTTPAndRaw(t *testing.T) {
	frame := trace.Frame{
		Dir: trace.In, Raw: []byte("GET /x?token=hunter2\nAuthorization: Bearer hunter2\npassword = 'hunter2'\n\"api_key\": \"hunter2\", \"a\": 1 it's basic\n"),
		HTTP: &trace.HTTP{Method: "GET", Path: "/messages?sessionId=hunter2&x=1", Headers: map[string][]string{
			"authorization":    {"Bearer hunter2"},
			"Cookie":           {"a=hunter2", "b=hunter2"},
			"Set-Cookie":       {"hunter2"},
			"MCP-Session-Id":   {"hunter2"},
			"Mcp-Param-ApiKey": {"hunter2"},
			"X-Api-Key":        {"hunter2"},
			"X-Ours":           {"hunter2"},
			"X-Goog-Api-Key":   {"hunter2"},
			"Private-Token":    {"hunter2"},
			"Location":         {"/cb?access_token=hunter2"},
			"Accept":           {"application/json"},
		}},
	}
	red := trace.NewRedactor(&trace.RedactorOptions{Headers: []string{"X-Ours"}})
	line := string(red.Frame(frame).Append(nil))
	if strings.Contains(line, "hunter2") {
		t.Errorf("a secret is left in %s", line)
	}
	for _, want := range []string{"application/json", `\"a\": 1 it's basic`, "x=1", "/cb?access_token=[redacted]", `"Cookie":["[redacted]","[redacted]"]`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s lacks %s", line, want)
		}
	}
	if frame.HTTP.Headers["Cookie"][0] != "a=hunter2" {
		t.Error("the original headers were changed")
	}
}

func TestRedactorNames(t *testing.T) {
	red := trace.NewRedactor(&trace.RedactorOptions{Names: []string{"pin"}})
	got := string(red.Frame(trace.Frame{Msg: []byte(`{"pin":1,"token":"word"}`)}).Msg)
	if want := `{"pin":"[redacted]","token":"word"}`; got != want {
		t.Errorf("redacted to %s, want %s", got, want)
	}
	none := trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})
	got = string(none.Frame(trace.Frame{Msg: []byte(`{"token":"a"}`), HTTP: &trace.HTTP{Headers: map[string][]string{"Authorization": {"x"}}}}).Append(nil))
	if want := `{"dir":"","http":{"headers":{"Authorization":["[redacted]"]}},"msg":{"token":"a"}}`; got != want {
		t.Errorf("redacted to %s, want %s", got, want)
	}
}

// LOG-26-008: a command line shows no secrets, nor does the note of a frame.
func TestRedactArgsAndNotes(t *testing.T) {
	in := trace.Frame{
		Dir: trace.Out, Kind: trace.KindStart, Note: "see https://me:hunter2@example.com/?api_key=hunter2, Bearer hunter2",
		Args: []string{
			"server", "--token", "hunter2", "--api-key=hunter2", "--github-token", "hunter2", "DB_PASSWORD=hunter2", "--password", "--verbose",
			"https://me:hunter2@example.com/", "--header", "Authorization: Bearer hunter2", "--name", "ada", "-y", "--token=", "-X-secret", "hunter2",
		},
	}
	got := trace.NewRedactor(nil).Frame(in)
	want := []string{
		"server", "--token", "[redacted]", "--api-key=[redacted]", "--github-token", "[redacted]", "DB_PASSWORD=[redacted]", "--password", "--verbose",
		"https://[redacted]@example.com/", "--header", "Authorization: [redacted] [redacted]", "--name", "ada", "-y", "--token=", "-X-secret", "[redacted]",
	}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	if strings.Contains(got.Note, "hunter2") {
		t.Errorf("note %q", got.Note)
	}
	if in.Args[2] != "hunter2" {
		t.Error("the original was changed")
	}
}

// LOG-26-008: known secrets are replaced everywhere, even under ordinary names.
func TestRedactValues(t *testing.T) {
	red := trace.NewRedactor(&trace.RedactorOptions{Values: []string{"s3cr3t-value", "s3cr3t-value-long", "short", ""}})
	line := string(red.Frame(trace.Frame{
		Dir: trace.In, Note: "exit s3cr3t-value", Args: []string{"x", "as3cr3t-valueb"}, Event: "e",
		Msg:  []byte(`{"text":"it is s3cr3t-value-long, or s3cr3t\u002dvalue","a":"short","b":"{\"q\":\"s3cr3t-value\"}"}`),
		HTTP: &trace.HTTP{Path: "/s3cr3t-value", Headers: map[string][]string{"X-Any": {"s3cr3t-value"}}},
	}).Append(nil))
	line += string(red.Frame(trace.Frame{Dir: trace.In, Kind: trace.KindStderr, Raw: []byte("token is s3cr3t-value-long.")}).Append(nil))
	if strings.Contains(line, "s3cr3t") || strings.Contains(line, "-long") {
		t.Errorf("a secret is left in %s", line)
	}
	if !strings.Contains(line, `"a":"short"`) {
		t.Errorf("too much is gone from %s", line)
	}
}

// The beginning of a message that was cut within a secret does not show it.
func TestRedactCutMessage(t *testing.T) {
	red := trace.NewRedactor(nil)
	for _, in := range []string{`{"a":1,"password":"hunter2`, `{"password" : "hunter2`, `{"text":"{\"token\":\"hunter2`} {
		if got := string(red.Frame(trace.Frame{Raw: []byte(in), Cut: 9}).Raw); strings.Contains(got, "hunter2") {
			t.Errorf("%s is redacted to %s", in, got)
		}
	}
}

// A redacted message is JSON of the same shape, and a secret under a known name is replaced
// everywhere.
func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"a":{"password":"x","b":[{"token":1}]},"properties":{"secret":{"type":"string"}}}`))
	f.Add([]byte(`{"t":"{\"token\":\"a\"}"}`))
	f.Add([]byte(`[1, {"api_key" : {"x":"y"}}]`))
	f.Add([]byte(`{"value":"a","name":"token","b":["Cookie: a='b=c","--token", "x"],"c":"token=a&token=b"}`))
	red := trace.NewRedactor(nil)
	f.Fuzz(func(t *testing.T, in []byte) {
		out := red.Frame(trace.Frame{Dir: trace.In, Msg: in}).Msg
		var before, after any
		if json.Unmarshal(in, &before) != nil || !utf8.Valid(in) {
			return // not a message; encoding/json accepts bad UTF-8
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q redacted to %q: %v", in, out, err)
		}
		if diff := cmp.Diff(shape(before), shape(after)); diff != "" {
			t.Fatalf("%q redacted to %q (-before +after):\n%s", in, out, diff)
		}
		if again := red.Frame(trace.Frame{Dir: trace.In, Msg: out}).Msg; !bytes.Equal(again, out) {
			t.Fatalf("redacting twice: %q then %q", out, again)
		}
		if m, ok := after.(map[string]any); ok {
			if s, ok := m["password"].(string); ok && s != trace.Redacted {
				t.Fatalf("password left in %q", out)
			}
		}
	})
}

// shape keeps the structure of a JSON value and not its scalars.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any)
		for name, member := range v {
			out[name] = shape(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shape(v[i])
		}
		return out
	}
	return nil
}

// LOG-26-008: learnt secrets are replaced in every form, even if learnt after the first frame.
func TestLearn(t *testing.T) {
	red := trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})
	const secret = `pl&nted "sec/ret" +ä`
	if got := red.Text(secret); got != secret {
		t.Fatalf("Text replaces what it does not know: %q", got)
	}
	red.Learn("before", secret, "-----BEGIN KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END KEY-----", "tiny")
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"plain": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "json": string(quoted), "go": strconv.Quote(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"a line of it": "  | MIGHAgEAMBMGByqGSM49",
	} {
		got := red.Text("a " + form + " b")
		if strings.Contains(got, "sec") || strings.Contains(got, form) || !strings.HasPrefix(got, "a ") || !strings.HasSuffix(got, " b") || !strings.Contains(got, trace.Redacted) {
			t.Errorf("%s: Text(%q) = %q", name, form, got)
		}
	}
	if got := red.Text("tiny"); got != "tiny" {
		t.Errorf("a short text became %q", got)
	}
	f := red.Frame(trace.Frame{Kind: trace.KindMessage, Msg: []byte(`{"text":` + string(quoted) + `}`)})
	if got := string(f.Msg); got != `{"text":"[redacted]"}` {
		t.Errorf("Frame gives %s", got)
	}
}

// The zero Redactor has the defaults.
func TestZeroRedactor(t *testing.T) {
	frame := trace.Frame{
		Msg:  []byte(`{"password":"hunter2secret","at":"https://ada:pw1@example.com/?api_key=k1","list":[{"name":"TOKEN","value":"v1"}],"text":"Cookie: c1"}`),
		HTTP: &trace.HTTP{Path: "/?token=t1", Headers: map[string][]string{"Authorization": {"Bearer b1"}, "X-Github-Token": {"g1"}}},
		Args: []string{"serve", "--api-key", "a1"}, Note: "password: n1",
	}
	zero := new(trace.Redactor)
	got, want := zero.Frame(frame), trace.NewRedactor(nil).Frame(frame)
	if !reflect.DeepEqual(got, want) || string(got.Msg) == string(frame.Msg) {
		t.Errorf("%s\nwant %s", got.Msg, want.Msg)
	}
	zero.Learn("learnt-secret")
	if text := zero.Text("a learnt-secret b"); text != "a "+trace.Redacted+" b" {
		t.Error(text)
	}
}

// A Redactor with the defaults is made by every start of the program, so it costs nothing until it is used: the
// expressions take 9 ms to compile.
func TestDefaultRedactorIsCheap(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() { trace.NewRedactor(nil) }); n > 2 {
		t.Errorf("NewRedactor(nil) makes %v allocations", n)
	}
}
