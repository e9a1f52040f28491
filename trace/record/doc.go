// Package record keeps the frames of a program in a folder of trace files, bounded in bytes and in
// age, so that the last days of a gateway can be looked at after something went wrong.
//
//	folder, err := record.Open("/var/lib/patchbay/frames", nil)
//	server.OnFrame = folder.Record
//	defer folder.Close()
//
// A file has the name trace-DAY-RUN-NUMBER.jsonl, such as trace-2026-11-23-090012-k3f7q2-0001.jsonl: the
// day and the time of the run's start are UTC, and the run ends in random letters, so that several
// programs can record into one folder at the same time. Each file is a trace of package trace, and [Files] lists them.
//
// # Guarantees
//
//   - Frames are redacted before they leave the process, by a [trace.Redactor].
//   - Record never waits. Frames that the disk is too slow for are dropped and counted, and the
//     next frame in the file has their number as "lost".
//   - A file ends at the end of its day, or before it exceeds [Options.MaxFile] bytes; a longer
//     frame has a file of its own.
//   - Before a file is begun, the oldest files of the folder are deleted until those left, with
//     the new one at its maximum, fit [Options.MaxBytes], and those older than [Options.MaxAge].
//     Files with other names are never deleted. Each other program that records into the folder
//     can add the bytes of one file.
//   - A write that fails, for instance because the disk is full, is reported once, loses whole
//     frames and never half a line, and is tried again each second; Open alone returns an error.
//   - A file that is removed or renamed while it is written is noticed with the first frame a second
//     later: that frame begins another file, and the room of a removed one is free. Frames of that
//     second are in the file that was removed or renamed.
//   - Folders are made with mode 0700 and files with mode 0600.
package record
