package bridge

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// The envelope replaces members of the caller's _meta that it has itself, and leaves the others as they are.
func TestModernParams(t *testing.T) {
	const (
		version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		own     = version + `,"io.modelcontextprotocol/clientInfo":{"name":"gw"},"io.modelcontextprotocol/clientCapabilities":{}`
		old     = `"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientInfo":{}`
	)
	r := &Remote{Rev: revision.Newest, Self: []byte(`{"name":"gw"}`)}
	full := Envelope{level: "info", token: []byte("7"), hops: []byte(`["a"]`)}
	for _, tt := range []struct {
		params string
		e      Envelope
		want   string
	}{
		{`{}`, Envelope{}, `{"_meta":{` + own + `}}`},
		{`{"name":"x"}`, Envelope{}, `{"name":"x","_meta":{` + own + `}}`},
		{`{"_meta":{},"name":"x"}`, Envelope{}, `{"_meta":{` + own + `},"name":"x"}`},
		{`{"_meta": { "a" : [1, 2], ` + old + `, "\u0062": "c" } , "name":"x"}`, Envelope{}, `{"_meta": {"a":[1, 2],"b":"c",` + own + `} , "name":"x"}`},
		{`{"_meta":{"progressToken":1,"dev.patchbay/hops":[],"` + engine.MetaLogLevel + `":"debug"}}`, Envelope{},
			`{"_meta":{"progressToken":1,"dev.patchbay/hops":[],"` + engine.MetaLogLevel + `":"debug",` + own + `}}`},
		{`{"_meta":{"progressToken":1,"dev.patchbay/hops":[],"` + engine.MetaLogLevel + `":"debug","a":1}}`, full,
			`{"_meta":{"a":1,` + own + `,"` + engine.MetaLogLevel + `":"info","progressToken":7,"dev.patchbay/hops":["a"]}}`},
	} {
		if got := string(r.ModernParams([]byte(tt.params), tt.e)); got != tt.want {
			t.Errorf("%s with %+v:\ngot  %s\nwant %s", tt.params, tt.e, got, tt.want)
		}
	}
}
