// Package audit keeps a log of calls in which every later change shows: lines of canonical JSON
// (with escapes for what controls a terminal), each with the hash of the line before it, and signed checkpoints.
//
//	key, err := audit.LoadKey("audit.key") // makes the key if the file is missing
//	if err != nil {
//		return err
//	}
//	log, err := audit.Open("audit.jsonl", &audit.Options{Key: key})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	trail := &audit.Trail{Log: log}
//	srv.Use(trail.Outer())        // in front: a line when a call has ended or was denied
//	gw.Middleware = trail.Around  // around each server: a line before a call leaves
//
// A policy stands in front of Around. A server without a gateway takes both, srv.Use(trail.Outer(),
// policy, trail.Around("notes")), or Around alone. Close the log last, after what makes calls.
//
// [Verify] checks the files of a log, [Read] and [Follow] read them, [Filter] selects lines, and
// [OTLP] sends them to an OpenTelemetry collector.
//
// # Guarantees
//
//   - When [Log.Write] returns nil, the line is on disk ([SyncGroup]) or with the operating system
//     ([SyncNone]), which survives the end of the process.
//   - After an error of Write the line is not in the log, and later lines are not joined to a
//     fragment of it. The error names the file and the next step.
//   - [Log.Add] never waits for the disk. At most 65,536 lines and 64 MiB wait; further lines are
//     dropped, and a line of kind "node" says how many. Write fails instead.
//   - Open removes the fragment that a killed process has left, and a line says so.
//   - A new file is readable only by its owner. Arguments are written only if [Options] say so, and
//     redacted. Results are written as a digest.
//   - One process writes to a file, unless [Options] say Shared.
package audit
