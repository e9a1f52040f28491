// Package sqlite keeps the state of an MCP server that must survive the end of its process, in one
// SQLite file on disk.
//
//	db, err := sqlite.Open("patchbay.db")
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	server.HTTP.Events = db.Events()
//	server.Tasks.Store = db.Tasks()
//
// Written data survives the end of the process at any moment; the writes just before a power
// failure may be lost. Only the owner can read the file and its companions (-wal, -shm), because
// they hold the messages from servers and clients.
package sqlite
