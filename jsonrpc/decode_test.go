package jsonrpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     jsonrpc.Message
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}`,
			jsonrpc.Message{ID: jsonrpc.IntID(1), Method: "m", Params: []byte(`{"a":[1]}`)}},
		{"any order, space, escapes", " {\n\"params\" : [ 1 ] , \"\\u006dethod\":\"\\u006d\",\"id\":\"x\",\"jsonrpc\":\"2\\u002e0\" }\r\n",
			jsonrpc.Message{ID: jsonrpc.StringID("x"), Method: "m", Params: []byte(`[ 1 ]`)}},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, jsonrpc.Message{ID: jsonrpc.IntID(1), Method: "m"}},
		{"null params of a notification", `{"jsonrpc":"2.0","params": null ,"method":"m"}`, jsonrpc.Message{Method: "m"}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, jsonrpc.Message{Method: "notifications/x"}},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, jsonrpc.Message{ID: jsonrpc.IntID(1), Result: []byte(`{"a":1}`)}},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, jsonrpc.Message{ID: jsonrpc.IntID(1), Result: []byte(`null`)}},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"x":1},"more":1}}`,
			jsonrpc.Message{ID: jsonrpc.IntID(1), Error: &jsonrpc.Error{Code: -32602, Message: "no", Data: []byte(`{"x":1}`)}}},
		// BASE-26-012: the id of an error may be absent; older peers write null.
		{"error, null id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, jsonrpc.Message{Error: &jsonrpc.Error{Code: 1}}},
		{"error, no id", `{"jsonrpc":"2.0","error":{"code":1,"message":""}}`, jsonrpc.Message{Error: &jsonrpc.Error{Code: 1}}},
		{"unknown members", `{"jsonrpc":"2.0","x":{"id":5},"method":"m","ids":null}`, jsonrpc.Message{Method: "m"}},
	} {
		got, err := jsonrpc.Decode([]byte(tt.in), jsonrpc.Limits{})
		if err != nil || !jsonrpc.Equal(&got, &tt.want) {
			t.Errorf("%s: Decode(%s) = %+v, %v, want %+v", tt.name, tt.in, got, err, tt.want)
		}
	}
}

// BASE-26-002, BASE-26-003, BASE-26-004, BASE-26-007, BASE-26-013, BASE-26-014,
// BASE-2506-001, BASE-2506-002, BASE-26-032, TRAN-26-001.
func TestDecodeRefuses(t *testing.T) {
	const parse, invalid = jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest
	one, none := jsonrpc.IntID(1), jsonrpc.ID{}
	for _, tt := range []struct {
		in       string
		code     int
		id       jsonrpc.ID
		response bool
	}{
		// Not JSON as we accept it.
		{``, parse, none, false},
		{`{`, parse, none, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m"`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}x`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}{"jsonrpc":"2.0","id":2,"method":"m"}`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"m"}`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{"b":1,"b":1}}}`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":1}}`, parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","x":{"a":1,"a":1}}`, parse, one, false},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":01},"id":1}`, parse, none, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\ud800"}}`, parse, one, false},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\xff\"}", parse, one, false},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}", parse, one, false},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1},"x":}`, parse, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,`, parse, one, true},
		// A syntax error is reported rather than a fault of the envelope.
		{`{"jsonrpc":"1.0","id":1,"method":"m"`, parse, one, false},
		// Not a message.
		{`null`, invalid, none, false},
		{`[]`, invalid, none, false},
		{`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, invalid, none, false},
		{`"x"`, invalid, none, false},
		{`{}`, invalid, none, false},
		{`{"id":1,"method":"m"}`, invalid, one, false},
		{`{"jsonrpc":"1.0","id":1,"method":"m"}`, invalid, one, false},
		{`{"jsonrpc":2.0,"id":1,"method":"m"}`, invalid, one, false},
		{`{"jsonrpc":null,"method":"m","id":1}`, invalid, one, false},
		{`{"jsonrpc":"2.0 ","method":"m","id":1}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":1.0,"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":1e3,"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":true,"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":{},"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":[1],"method":"m"}`, invalid, none, false},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":["m"]}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":1}`, invalid, one, false},
		{`{"jsonrpc":"2.0","params":{},"id":1}`, invalid, one, false},
		{`{"jsonrpc":"2.0","params":{},"id":1,"result":{}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, invalid, one, true},
		{`{"jsonrpc":"2.0","result":{}}`, invalid, none, true},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, invalid, none, true},
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"-32601","message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":""}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":1}}`, invalid, one, true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","Code":2}}`, invalid, one, true},
		// Wrong case; the last two are letters that fold to s.
		{`{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"method":"m"}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","ID":2}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","Params":{}}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","param` + "\u017f" + `":{}}`, invalid, one, false},
		{`{"jsonrpc":"2.0","id":1,"method":"m","re\u017Fult":{}}`, invalid, one, false},
	} {
		got, err := jsonrpc.Decode([]byte(tt.in), jsonrpc.Limits{})
		var d *jsonrpc.DecodeError
		if !errors.As(err, &d) {
			t.Errorf("Decode(%s) = %+v, %v, want a DecodeError", tt.in, got, err)
			continue
		}
		if d.Err.Code != tt.code || d.ID != tt.id || d.Response != tt.response {
			t.Errorf("Decode(%s) = code %d, id %v, response %v (%v), want %d, %v, %v",
				tt.in, d.Err.Code, d.ID, d.Response, err, tt.code, tt.id, tt.response)
		}
		if !errors.Is(err, &jsonrpc.Error{Code: tt.code}) {
			t.Errorf("Decode(%s) = %v does not wrap the error to answer", tt.in, err)
		}
		if !jsonrpc.Equal(&got, &jsonrpc.Message{}) {
			t.Errorf("Decode(%s) returned %+v with an error", tt.in, got)
		}
	}
}

func TestDecodeLimits(t *testing.T) {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"m","params":`, `}`
	nested := func(n int) []byte { // the message itself is one level
		return []byte(head + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + tail)
	}
	for _, tt := range []struct {
		in   []byte
		lim  jsonrpc.Limits
		code int
	}{
		{nested(128), jsonrpc.Limits{}, 0},
		{nested(129), jsonrpc.Limits{}, jsonrpc.CodeParse},
		{nested(3), jsonrpc.Limits{MaxDepth: 3}, 0},
		{nested(4), jsonrpc.Limits{MaxDepth: 3}, jsonrpc.CodeParse},
		{nested(3), jsonrpc.Limits{MaxBytes: len(nested(3))}, 0},
		{nested(3), jsonrpc.Limits{MaxBytes: len(nested(3)) - 1}, jsonrpc.CodeInvalidRequest},
	} {
		_, err := jsonrpc.Decode(tt.in, tt.lim)
		var e *jsonrpc.Error
		if errors.As(err, &e); tt.code == 0 && err != nil || tt.code != 0 && (e == nil || e.Code != tt.code) {
			t.Errorf("Decode of %d bytes with %+v = %v, want code %d", len(tt.in), tt.lim, err, tt.code)
		}
	}
	// A message of a batch may be as deep as a single one.
	if batch, err := jsonrpc.DecodeBatch(fmt.Appendf(nil, "[%s]", nested(128)), jsonrpc.Limits{}); err != nil || batch[0].Err != nil {
		t.Errorf("DecodeBatch of a message of depth 128: %v", err)
	}
	if _, err := jsonrpc.DecodeBatch(fmt.Appendf(nil, "[%s]", nested(130)), jsonrpc.Limits{}); err == nil {
		t.Error("DecodeBatch of a message of depth 130: no error")
	}
}

// BASE-2503-001: batches of 2025-03-26.
func TestDecodeBatch(t *testing.T) {
	in := ` [ {"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}} , 5, {"jsonrpc":"2.0","id":2}, {"jsonrpc":"2.0","method":"b"},
		{"jsonrpc":"2.0","id":3,"result":{}}, [], {"jsonrpc":"2.0","id":null,"method":"c"} ] `
	batch, err := jsonrpc.DecodeBatch([]byte(in), jsonrpc.Limits{})
	if err != nil || !jsonrpc.IsBatch([]byte(in)) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range batch {
		if e.Err != nil {
			got = append(got, fmt.Sprint(e.Err.ID, " ", e.Err.Err.Code))
		} else {
			got = append(got, fmt.Sprint(e.Message.ID, " ", e.Message.Method, " ", e.Message.Kind()))
		}
	}
	want := `["1 a request" "null -32600" "2 -32600" "null b notification" "3  response" "null -32600" "null -32600"]`
	if fmt.Sprintf("%q", got) != want {
		t.Errorf("got  %q\nwant %s", got, want)
	}
	if x, _ := batch[0].Message.Param("x"); string(x) != "1" {
		t.Errorf("Param(x) of the first = %q", x)
	}
	thousand := "[" + strings.Repeat("0,", 999) + "0]"
	for _, tt := range []struct {
		in   string
		code int
	}{
		{`[]`, jsonrpc.CodeInvalidRequest}, {`{}`, jsonrpc.CodeInvalidRequest}, {`5`, jsonrpc.CodeInvalidRequest},
		{``, jsonrpc.CodeParse}, {`[`, jsonrpc.CodeParse}, {`[1`, jsonrpc.CodeParse}, {`[1,]`, jsonrpc.CodeParse}, {`[1]x`, jsonrpc.CodeParse},
		{`{`, jsonrpc.CodeParse}, {`[{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}]`, jsonrpc.CodeParse},
		{thousand, 0}, {"[0," + thousand[1:], jsonrpc.CodeInvalidRequest},
	} {
		batch, err := jsonrpc.DecodeBatch([]byte(tt.in), jsonrpc.Limits{})
		var e *jsonrpc.Error
		errors.As(err, &e)
		if tt.code == 0 && err != nil || tt.code != 0 && (e == nil || e.Code != tt.code || batch != nil) {
			t.Errorf("DecodeBatch(%.60s) = %v, want code %d", tt.in, err, tt.code)
		}
	}
	if _, err := jsonrpc.DecodeBatch([]byte(`[1,2,3]`), jsonrpc.Limits{MaxBatch: 2}); err == nil {
		t.Error("DecodeBatch of three with MaxBatch 2: no error")
	}
	if _, err := jsonrpc.DecodeBatch([]byte(`[1,2,3]`), jsonrpc.Limits{MaxBytes: 6}); err == nil {
		t.Error("DecodeBatch of seven bytes with MaxBytes 6: no error")
	}
}

func TestDecodeAllocs(t *testing.T) {
	in := []byte(toolsCall)
	least := 100.0
	for range 50 { // the race detector empties pools at random
		least = min(least, testing.AllocsPerRun(1, func() {
			m, _ := jsonrpc.Decode(in, jsonrpc.Limits{})
			m.Param("name")
			m.ParamIn("_meta", "progressToken")
		}))
	}
	if least != 0 {
		t.Errorf("Decode of a frequent method allocates %v times, want 0", least)
	}
}

// FuzzDecode: encoding and decoding again gives the same message; Decode and jsontext accept the
// same JSON; no input gives both a message and an error; Param finds the members that a scan of
// params finds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		toolsCall,
		`{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","id":"a","result":{"content":[]}}`,
		"{\"jsonrpc\":\"2.0\",\n\"id\":-0,\"error\":{\"code\":-32603,\"message\":\"\\u0000\",\"data\":[\n1]}}",
		`{"jsonrpc":"2.0","id":12345678901234567890123,"method":"m","params":[1]}`,
		`[{"jsonrpc":"2.0","id":1,"method":"m"},5]`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"\u0062":2,"c":{"d":1},"e":0,"f":0,"g":0,"h":0,"i":0,"j":0}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","Params":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		lim := jsonrpc.Limits{MaxDepth: 10_000} // the bound of jsontext
		if jsonrpc.IsBatch(in) {
			batch, err := jsonrpc.DecodeBatch(in, lim)
			if err != nil && batch != nil {
				t.Fatalf("DecodeBatch(%q) returned a batch and %v", in, err)
			}
			if err == nil && !jsontext.Value(in).IsValid() {
				t.Fatalf("DecodeBatch(%q) accepts what jsontext refuses", in)
			}
			for _, e := range batch {
				if e.Err == nil {
					roundTrip(t, in, e.Message)
				}
			}
			return
		}
		m, err := jsonrpc.Decode(in, lim)
		if got, want := !errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeParse}), jsontext.Value(in).IsValid(); got != want {
			t.Fatalf("Decode(%q) = %v, jsontext says valid %v", in, err, want)
		}
		if err == nil {
			roundTrip(t, in, m)
		} else if !jsonrpc.Equal(&m, &jsonrpc.Message{}) {
			t.Fatalf("Decode(%q) returned both %+v and error %v", in, m, err)
		}
	})
}

func roundTrip(t *testing.T, in []byte, m jsonrpc.Message) {
	out := jsonrpc.Append(nil, &m)
	if strings.ContainsAny(string(out), "\r\n") {
		t.Fatalf("encoding of %q has a newline: %q", in, out)
	}
	again, err := jsonrpc.Decode(out, jsonrpc.Limits{MaxDepth: 10_000})
	if err != nil {
		t.Fatalf("round trip of %q gave %q (error %v)", in, out, err)
	}
	// Newlines between tokens are all that the encoding may lose.
	want := m.Clone()
	want.Params, want.Result = oneLine(want.Params), oneLine(want.Result)
	if want.Error != nil {
		want.Error.Data = oneLine(want.Error.Data)
	}
	if !jsonrpc.Equal(&again, &want) {
		t.Fatalf("round trip of %q gave %q", in, out)
	}
	built := jsonrpc.Message{Params: m.Params} // has no index
	for _, name := range []string{"name", "a", "b", "c", "_meta", "", "arguments", "h", "i"} {
		got, ok := m.Param(name)
		want, wantOK := built.Param(name)
		if string(got) != string(want) || ok != wantOK {
			t.Fatalf("Param(%q) of %q = %q, %v, want %q, %v", name, m.Params, got, ok, want, wantOK)
		}
		got, ok = m.ParamIn("_meta", name)
		want, wantOK = built.ParamIn("_meta", name)
		if string(got) != string(want) || ok != wantOK {
			t.Fatalf("ParamIn(_meta, %q) of %q = %q, %v, want %q, %v", name, m.Params, got, ok, want, wantOK)
		}
	}
}

func oneLine(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	return []byte(strings.NewReplacer("\r", "", "\n", "").Replace(string(raw)))
}

func BenchmarkDecode(b *testing.B) {
	long := `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"write","arguments":{"text":"` +
		strings.Repeat(`a line of a source file, as tools get it\n`, 1560) + `"}}}`
	for _, bb := range []struct{ name, in string }{{"call=312B", toolsCall}, {"call=64KiB", long}} {
		b.Run(bb.name, func(b *testing.B) {
			in := []byte(bb.in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Decode(in, jsonrpc.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
