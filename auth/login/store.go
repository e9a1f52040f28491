package login

import (
	"context"
	"time"
)

// Store keeps logins from one process to the next. Its methods may be called by several
// goroutines and processes at once. Package auth/vault has one.
type Store interface {
	// Load returns the logins at a server, the newest first; none is not an error. The server is
	// named as in [Key].
	Load(ctx context.Context, server string) ([]Record, error)

	// Save adds a login, or replaces the one with the same Key. When it returns nil, the login
	// survives a crash or restart of the process and of the machine; when it fails, the previous
	// login is still there.
	Save(ctx context.Context, r *Record) error

	// Delete forgets a login. If there is none of the Key, that is not an error.
	Delete(ctx context.Context, k Key) error

	// Lock waits until nobody else, in this process or another, holds the lock of that name. The
	// lock ends with unlock, or with the process. The error comes from ctx or from the store.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// Key tells logins apart. A token is used at no other server, and a refresh token with no
// other issuer and by no other client.
type Key struct {
	Server string // scheme, host and path
	Issuer string
	Client string // client id
}

// Record is one login as a [Store] keeps it: its tokens, and what refreshing and revoking them
// takes.
type Record struct {
	Key

	Resource  string // that tokens are asked for
	TokenURL  string
	RevokeURL string // empty: none was offered (RFC 7009)

	ClientSecret Secret // empty: a public client
	ClientMethod string // to authenticate at TokenURL: "none", "client_secret_basic", "client_secret_post"

	Access  Secret
	Refresh Secret    // empty: none was given, or it was refused
	Asked   []string  // scopes asked for so far
	Granted []string  // scopes of the token; nil: as asked
	Got     time.Time // when the token was asked for
	Expires time.Time // of Access; zero: not known

	// Refreshing is the time at which a refresh began, until the new tokens are stored; zero if no
	// refresh is in progress. It is saved before the refresh token is used, to see that the new
	// tokens can be stored.
	Refreshing time.Time
}
