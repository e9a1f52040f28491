// Package store keeps on disk, in one SQLite file, what an MCP server must not forget
// when its process ends.
//
//	db, err := store.Open("patchbay.db")
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	server.HTTP.Events = db.Events()
//	server.Tasks.Store = db.Tasks()
//
// What was written survives the end of the process at any moment; the last moments
// before a power cut may be lost. The file and its companions (-wal, -shm) are readable
// by their owner alone: they hold what servers and clients said to each other.
package store
