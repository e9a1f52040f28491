// Package memory keeps conversations on disk, in one SQLite file.
//
//	s, err := memory.Open("")
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	c, err := s.Create(ctx, memory.Conversation{Model: "openai/gpt-5-mini"})
//	if err != nil {
//		return err
//	}
//	err = s.Append(ctx, c.ID, memory.Entry{Turn: 1, Message: model.UserText("hello")})
//
// What it keeps can be listed, searched, taken back, renamed, deleted, and written out as
// Markdown for people or as JSON, which can be read in again.
//
// # Guarantees
//
//   - What Append has kept survives the end of the process at any moment; the last moments before
//     a power cut may be lost. A change that fails, as on a full disk, changes nothing.
//   - Several processes may have the file open. Each change waits up to 5 seconds for another.
//   - The file and its companions (-wal, -shm) are readable by their owner alone.
//   - No text of a search is an error.
//   - Lists and searches read no messages: they take as long with results of 10 MB as without.
package memory
