package duplex

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// tapped shows every frame to a tap.
type tapped struct {
	jsonrpc.Conn
	tap engine.Tap
}

func (t *tapped) Read(buf []byte) ([]byte, error) {
	frame, err := t.Conn.Read(buf)
	if err == nil {
		t.tap(false, frame)
	}
	return frame, err
}

func (t *tapped) Write(frame []byte) error {
	t.tap(true, frame)
	return t.Conn.Write(frame)
}

// note returns the raw value that ties a notification to a request of its
// receiver: a progress token or a subscription id.
func tieOf(msg *jsonrpc.Message) (token, subscription json.RawMessage) {
	token, _ = msg.Param("progressToken")
	if meta, ok := msg.Param("_meta"); ok {
		subscription, _ = jsonx.Lookup(meta, engine.MetaSubscription)
	}
	return token, subscription
}
