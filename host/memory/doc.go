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
//	c, err = s.Write(ctx, c, 0, memory.Entry{Turn: 1, Message: model.UserText("hello")})
//
// What it keeps can be listed, searched, taken back, deleted, and written out as Markdown for
// people or as JSON.
//
// # Guarantees
//
//   - What Write has kept survives the end of the process at any moment; the last moments before
//     a power cut may be lost. A change that fails, as on a full disk, changes nothing.
//   - Several processes may have the file open. Each change waits up to 5 seconds for another. Of
//     two that go on with one conversation the second is told so, and takes nothing away.
//   - The file and its companions (-wal, -shm) are readable by their owner alone.
//   - No text of a search is an error.
//   - Lists and searches read no messages: they take as long with results of 10 MB as without.
package memory
