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
// Conversations can be listed, searched, deleted, and written as Markdown for people or as JSON;
// messages can be replaced or removed.
//
// # Guarantees
//
//   - The result of Write survives the end of the process at any moment; the last changes before
//     a power cut may be lost. A change that fails, as on a full disk, changes nothing.
//   - Several processes may have the file open. Each change waits up to 5 seconds for another. If
//     two continue one conversation, the second gets an error and overwrites nothing.
//   - The file and its companions (-wal, -shm) are readable only by their owner.
//   - Every search text is valid.
//   - Lists and searches do not read messages, so large results do not slow them down.
package memory
