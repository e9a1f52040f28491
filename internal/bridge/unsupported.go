package bridge

import (
	"errors"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// unsupportedQuestion ends a forwarded call in which a legacy server asked a question that the
// caller in front does not support.
type unsupportedQuestion struct {
	lacks *engine.LacksError
	page  *requiredURL // the page for the user to visit, nil for another question
}

func (e *unsupportedQuestion) Error() string { return e.lacks.Error() }

// endsWith returns the error that ends a call after a failed question, or nil. A caller that speaks
// 2026-07-28 is told which capability it would have to declare (T-40). If the client cannot send
// its user to a page, the error holds the URL of the page as text (T-26). After any other failed
// question, endsWith returns nil and the call continues.
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

// unshowable reports whether a question to the user failed because its caller's revision lacks such
// forms, for instance those with several choices; the user then declines (T-73).
func unshowable(q engine.Question, err error) bool {
	var lacks *engine.LacksError
	return q.Method == revision.MethodElicit && errors.As(err, &lacks) && lacks.Required == nil
}

// answer returns the answer for the caller in front.
func (e *unsupportedQuestion) answer(call *engine.Call, method string) error {
	if e.page == nil {
		return e.lacks
	}
	return forwardURLs(call, method, e, []requiredURL{*e.page})
}

// lacking returns the answer to a tool call for which a server that speaks 2026-07-28 requires a
// capability that a legacy caller did not declare: the caller's revision has no error for it, and a
// model can act on the text (T-23, T-171). It returns nil for any other error.
func lacking(call *engine.Call, method string, err error) error {
	var rpc *jsonrpc.Error
	if method != revision.MethodCall || !call.Peer.Revision.Sessions || !errors.As(err, &rpc) || rpc.Code != revision.CodeMissingCapability {
		return nil
	}
	return &ToolFailure{text.Short(rpc.Message)}
}
