package mcp

// Reach returns why the server cannot be reached: the [*net.OpError] of a connection that could not
// be opened. It returns nil if the last request got a response, or if no request was sent yet. The
// channel is closed when the server can be reached again, or no longer; call Reach again then.
//
// A session over Streamable HTTP outlasts its connections: the server may restart meanwhile. Before
// 2026-07-28 the Session keeps the GET stream open, if the server has one, and so finds out without
// a call. A session over any other transport ends with its connection, see [Session.Done]: its error
// and its channel are nil.
func (s *Session) Reach() (changed <-chan struct{}, err error) {
	if w, ok := s.server().remote.Wire.(interface {
		Reach() (<-chan struct{}, error)
	}); ok {
		return w.Reach()
	}
	return nil, nil
}
