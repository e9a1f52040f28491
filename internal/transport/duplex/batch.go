package duplex

import (
	"sync"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// batch serves the messages of a batch and answers with a batch (only 2025-03-26). It returns the
// refusal to write if it does not serve the batch.
func (p *peer) batch(buf *[]byte, lim jsonrpc.Limits) (refusal []byte) {
	sess := p.session()
	if sess == nil || !sess.Peer.Revision.Batches {
		buffer.Put(buf)
		return jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "only revision 2025-03-26 has batches; send one message per line"})
	}
	elements, err := jsonrpc.DecodeBatch(*buf, lim)
	if err != nil {
		buffer.Put(buf)
		return decodeError(err)
	}
	answers := make([][]byte, len(elements))
	begun := make([]*exchange, len(elements)) // before the next frame is read, because it may cancel one
	for i := range elements {
		el := &elements[i]
		switch {
		case el.Err != nil && el.Err.Response:
			p.response(&jsonrpc.Message{ID: el.Err.ID, Error: el.Err.Err})
			continue
		case el.Err != nil:
			answers[i] = decodeError(el.Err)
			continue
		}
		switch el.Message.Kind() {
		case jsonrpc.KindResponse:
			p.response(&el.Message)
		case jsonrpc.KindNotification:
			p.notification(&el.Message)
		default:
			x, refusal := p.begin(&el.Message)
			if refusal != nil {
				answers[i] = refusal.Append(nil)
			}
			begun[i] = x
		}
	}
	p.start(func() {
		defer buffer.Put(buf)
		var wg sync.WaitGroup
		for i, x := range begun {
			if x == nil {
				continue
			}
			wg.Go(func() {
				var reply engine.Reply
				defer func() { // a handler may end its goroutine
					if x.finish() {
						answers[i] = reply.Append(nil)
					}
					p.free(x.msg.ID)
					p.end(x)
				}()
				p.answer(x, &reply)
			})
		}
		wg.Wait()
		var out []byte
		for _, a := range answers {
			if a == nil {
				continue
			}
			if out == nil {
				out = append(out, '[')
			} else {
				out = append(out, ',')
			}
			out = append(out, a...)
		}
		if out != nil {
			p.write(append(out, ']'))
		}
	})
	return nil
}
