package bridge

import (
	"errors"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// unsupportedQuestion ends a forwarded call of a legacy server that asked what the caller in front
// cannot be asked.
type unsupportedQuestion struct {
	lacks *engine.LacksError
	page  *requiredURL // that the user was to be sent to, nil for another question
}

func (e *unsupportedQuestion) Error() string { return e.lacks.Error() }

// endsWith tells whether a call ends with a question that failed so. A caller of 2026-07-28
// is told what it would have to declare (T-40), and a user who cannot be sent to a page
// gets it as text (T-26). Other questions the server may do without.
func endsWith(call *engine.Call, q engine.Question, err error) *unsupportedQuestion {
	end := &unsupportedQuestion{}
	if !errors.As(err, &end.lacks) {
		return nil
	}
	if !call.Peer.Revision.Sessions && end.lacks.Required != nil {
		return end
	}
	var page requiredURL
	if mode, _ := jsonx.Lookup(q.Params, "mode"); q.Method != revision.MethodElicit || string(mode) != `"url"` || jsonx.Unmarshal(q.Params, &page) != nil {
		return nil
	}
	end.page = &page
	return end
}

// unshowable tells whether a question to the user failed because its caller's revision has no
// such forms, as of several choices; then the user declines (T-73).
func unshowable(q engine.Question, err error) bool {
	var lacks *engine.LacksError
	return q.Method == revision.MethodElicit && errors.As(err, &lacks) && lacks.Required == nil
}

// answer is the answer to the caller in front.
func (e *unsupportedQuestion) answer(call *engine.Call, method string) error {
	if e.page == nil {
		return e.lacks
	}
	return forwardURLs(call, method, e, []requiredURL{*e.page})
}

// lacking is the answer to a call of a tool for which a server of 2026-07-28 wants what a
// legacy caller did not declare: that revision has no error for it, and a model can act on
// the text (T-23, T-171); nil for another error.
func lacking(call *engine.Call, method string, err error) error {
	var rpc *jsonrpc.Error
	if method != revision.MethodCall || !call.Peer.Revision.Sessions || !errors.As(err, &rpc) || rpc.Code != revision.CodeMissingCapability {
		return nil
	}
	return &ToolFailure{clip(rpc.Message)}
}
