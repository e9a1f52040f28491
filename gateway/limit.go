package gateway

import (
	"errors"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// limited rewords an error for the caller if it is about a limit of the session that [Source.Open]
// returned. Other errors are returned unchanged.
func (up *upstream) limited(method string, err error) error {
	if err == nil {
		return nil
	}
	var limit *mcp.LimitError
	if !errors.As(err, &limit) {
		return err
	}
	unknown, who := "", "the server"
	if method == "tools/call" {
		unknown, who = "; the tool may or may not have run", "the tool"
	}
	text := "server %q sent nothing for %v (callTimeout), so the call was cancelled%s. If %s needs more time, have it report progress, or raise callTimeout of the server in mcp.json"
	if limit.Total {
		text = "server %q took longer than %v (callLimit), so the call was cancelled%s. If %s needs more time, raise callLimit of the server in mcp.json"
	}
	return &reworded{mcp.Errorf(jsonrpc.CodeInternal, text, up.name, limit.Limit, unknown, who), err}
}
