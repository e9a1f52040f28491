// Package store has the interfaces of the stores in which an mcp.Server keeps what must outlive a
// connection or the process: [Events] (mcp.HTTPConfig.Events), [Sessions] (mcp.HTTPConfig.Sessions),
// [Tasks] (mcp.TaskConfig.Store) and [States] (mcp.StateConfig.Store). Without a store the server
// keeps them in memory, and states with the caller. [Shared] (mcp.Server.Shared) has those of several processes, which a
// cluster.Node gives.
//
// Package store/sqlite keeps events and tasks in a file. A store of your own implements one of the
// interfaces or several; the names of their methods differ.
//
// # Guarantees
//
// A server calls the methods from several goroutines at once. A panic in a method fails only the
// operation that needed it, as an error of the method does.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Events keeps the events that legacy calls send on their streams, so that a client whose connection
// broke can resume a stream. Positions count from 1 within a stream and come in order; names of
// streams are unguessable.
//
// Specification: 2025-11-25, basic/transports, Resumability and Redelivery.
type Events interface {
	// Append keeps an event. It must not retain event after it returns.
	Append(ctx context.Context, stream string, position int64, event []byte) error
	// After returns the events after a position, in order. The oldest may be missing if they are no
	// longer kept; that is not an error.
	After(ctx context.Context, stream string, position int64) ([][]byte, error)
	// Forget drops a stream. The stream may be unknown.
	Forget(ctx context.Context, stream string) error
}

// SharedEvents are Events that several processes share: each sees what the others keep. A client whose process has ended can then
// resume its streams at the one that continues its session ([Sessions]).
type SharedEvents interface {
	Events
	// Name returns the name of a stream that begins, made of an unguessable one, such that Follow finds its process. It adds letters, digits and full stops.
	Name(stream string) string
	// Follow yields what another process keeps of a stream, from the first event after a position. Some events may be missing if they are no
	// longer kept. An Event without a position comes behind those that there are now, perhaps more than once. Later ones follow it, until
	// the other process forgets the stream or has surely ended. After an error nothing follows, and there may be more.
	Follow(ctx context.Context, stream string, position int64) iter.Seq2[Event, error]
}

// Event is an event of a stream.
type Event struct {
	Position int64
	Data     []byte // nil: it was too large to be shared
}

// Tasks keeps tasks and their results.
type Tasks interface {
	// PutTask keeps a task and replaces the one with the same ID.
	PutTask(ctx context.Context, t Task) error
	// GetTask returns a task; false if there is none, or it has expired.
	GetTask(ctx context.Context, id string) (Task, bool, error)
	// ListTasks returns the first tasks of an owner, at most limit, ordered by id, with ids greater
	// than after.
	ListTasks(ctx context.Context, owner, after string, limit int) ([]Task, error)
}

// Task is a task in a store.
type Task struct {
	ID, Owner string
	Expires   time.Time
	Over      bool            // its state is final
	Data      json.RawMessage // a DetailedTask of extensions/tasks
	Elsewhere bool            // it is at work in another process that lives; only a store that several processes share sets it
}

// States keeps the state of calls that wait for an answer, so that what travels with the caller is a
// reference that works once.
type States interface {
	// Put keeps a state until it is taken or ttl has passed, and returns a reference to it.
	Put(ctx context.Context, state []byte, ttl time.Duration) (ref string, err error)
	// Take returns a state and forgets it. An unknown reference is an error.
	Take(ctx context.Context, ref string) ([]byte, error)
}

// Sessions keeps what a server must know of a session of a revision before 2026-07-28 to continue it, when the process
// that opened it has ended. Calls in progress, and what the server's own tools keep in memory for a session, end with the
// process.
type Sessions interface {
	// PutSession keeps a session and replaces the one with the same ID. It is called before the client learns of the session,
	// and whenever its Data has changed. The error is [ErrNoRoom] if a bound of the store is reached.
	PutSession(ctx context.Context, s Session) error
	// GetSession returns a session that this process shall continue; false if there is none, or another process has it. It is
	// called for each id that the server does not know.
	GetSession(ctx context.Context, id string) (Session, bool, error)
	// DropSession forgets a session that has ended. The session may be unknown.
	DropSession(ctx context.Context, id string) error
	// OnTaken is called once, with a function that ends a session of this process which another one continues. A store
	// for one process does nothing.
	OnTaken(end func(id string))
}

// SharedSessions are Sessions whose processes tell each other what a client sends about a call that goes on in a process which has
// given its session up: answers to the questions of the call, and its cancellation.
type SharedSessions interface {
	Sessions
	// Pass gives a message, which is about no call and no question of this process, to those that had the session of that ID
	// before. The message is valid until Pass returns.
	Pass(ctx context.Context, id string, message json.RawMessage) error
	// OnPassed is called once, with a function that handles a message of Pass in a process that had the session.
	OnPassed(handle func(id string, message json.RawMessage))
}

// Shared is what several processes that serve the same have together. A store that is nil is not shared: each process has its own.
type Shared interface {
	Sessions() Sessions
	Events() Events
	Tasks() Tasks
	// StateKeys returns the keys of requestState as they are now, of 32 random bytes each: the first seals, all open. It is called
	// for each state. A process seals with a new key when the others have it, and keeps the one before for as long as a state is
	// valid. The keys are not changed afterwards.
	StateKeys() [][]byte
	// Tell tells a change to the other processes. Each hears it at most once; one that is slow or cannot be reached at that moment misses
	// it. Tell does not wait for them, may keep change, and may tell equal changes as one. To share no changes, do nothing.
	Tell(change []byte)
	// OnTold is called once, with a function that handles a change that another process has told. The change is valid until it returns.
	// To share no changes, do nothing.
	OnTold(hear func(change []byte))
}

// ErrOver says that a task has ended in another process, and stays as it ended there.
var ErrOver = errors.New("store: the task has ended in another process")

// ErrNoRoom says that a store keeps no more. Texts of errors that wrap it are shown to clients.
var ErrNoRoom = errors.New("store: no room")

// Session is a session in a store.
type Session struct {
	ID        string // a secret: a caller of the same principal can use the session with it
	Principal string // of its client; empty: not authenticated
	Data      json.RawMessage
}
