// Package replay plays one side of a recording: the recorded client against a live server
// ([Run]), or the recorded server for live clients ([Mock]).
//
// A recording is split into exchanges, each a request with everything that belongs to it, in the
// form of the newest revision and independent of the transport. So a recording of one revision
// and transport can be played on another.
//
// # Guarantees
//
//   - No content of a trace causes a panic, and [Recording.Faults] lists the parts that cannot be
//     used.
//   - Exchanges are played one after the other, in the order of their requests, even if they
//     overlapped when they were recorded.
package replay
