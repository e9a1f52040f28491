// Package replay puts the two sides of a recording together again: as the client that
// was recorded, in front of a live server ([Run]), or as the server that was recorded,
// for live clients ([Mock]).
//
// A recording is taken apart into exchanges, each a request with everything that
// belongs to it, in the form of the newest revision and without what belongs to the
// wire. So a recording of one revision and transport can be played on another.
//
// # Guarantees
//
//   - Whatever stands in a trace, nothing panics, and what cannot be used is told in
//     [Recording.Faults].
//   - Exchanges are played one after the other, in the order of their requests, also
//     those that overlapped when they were recorded.
package replay
