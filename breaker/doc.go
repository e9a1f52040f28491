// Package breaker stops requests to a server that fails, so that callers get an error at once instead
// of waiting, and the server gets time to recover.
//
//	b := &breaker.Breaker{Name: `server "jira"`, Probe: func(ctx context.Context) error {
//		s, err := client.Dial(ctx, "https://jira.example/mcp")
//		if err == nil {
//			_, err = s.Raw(ctx, "server/discover", nil)
//			s.Close()
//		}
//		return err
//	}}
//	defer b.Stop()
//	handler := b.Handler(session)
//
// A breaker is closed at first: requests pass. It opens if, with the default [Rule], 10 of the last 20
// requests within 30 seconds have failed. After 15 seconds Probe is called; if it succeeds, the breaker
// closes. If it fails, or if the breaker opens again soon after, the next pause is twice as long, at
// most 2 minutes.
//
// # Guarantees
//
//   - Only faults of the way to the server count, each with its [Kind]: a lost connection, a status of 500 and
//     more, a time limit, the error -32603, and an answer that is not one, such as a web page. A tool's own error (isError), a refusal by a policy, an error about
//     the arguments and a request that the caller has cancelled never count.
//   - A request of a caller never serves as a probe.
//   - An [OpenError] names the server, the last fault and the time of the next probe, and says that the
//     request was not sent.
package breaker
