package mcp

import (
	"errors"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// unanswered ends a forwarded call of a legacy server that asked what the caller in front
// cannot be asked.
type unanswered struct {
	lacks *engine.LacksError
	page  *visit // that the user was to be sent to, nil for another question
}

func (e *unanswered) Error() string { return e.lacks.Error() }

// endsWith tells whether a call ends with a question that failed so. A caller of 2026-07-28
// is told what it would have to declare (T-40), and a user who cannot be sent to a page
// gets it as text (T-26). Other questions the server may do without.
func endsWith(call *engine.Call, q engine.Question, err error) *unanswered {
	end := &unanswered{}
	if !errors.As(err, &end.lacks) {
		return nil
	}
	if !call.Peer.Revision.Sessions && end.lacks.Required != nil {
		return end
	}
	var page visit
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
func (e *unanswered) answer(call *engine.Call, method string) (Result, error) {
	if e.page == nil {
		return nil, e.lacks
	}
	return forwardPages(call, method, e, []visit{*e.page})
}

// lacking is the answer to a call of a tool for which a server of 2026-07-28 wants what a
// legacy caller did not declare: that revision has no error for it, and a model can act on
// the text (T-23, T-171); false for another error.
func lacking(call *engine.Call, method string, err error) (Result, bool) {
	var rpc *Error
	if method != revision.MethodCall || !call.Peer.Revision.Sessions || !errors.As(err, &rpc) || rpc.Code != CodeMissingCapability {
		return nil, false
	}
	return &ToolResult{Content: []Content{Text(clip(rpc.Message))}, IsError: true}, true
}
