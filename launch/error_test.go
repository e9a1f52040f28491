package launch_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A server that refuses a caller over a rate limit was reached.
func TestErrorOverALimit(t *testing.T) {
	limited := &mcp.Error{Code: jsonrpc.CodeInternal, Message: "more requests than 2/m from one caller; try again in 30 s", Data: json.RawMessage(`{"retryAfter":30}`)}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{limited, "shop refuses the request: more requests than 2/m from one caller; try again in 30 s"},
		{errors.New("no route"), "cannot reach shop: no route"},
	} {
		if got := (&launch.Error{Server: "shop", Err: tt.err}).Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
