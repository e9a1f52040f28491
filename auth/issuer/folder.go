package issuer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// ErrInUse is in the error of [Server.Check] if another Server uses the folder Dir.
var ErrInUse = errors.New("issuer: the folder is in use")

const (
	lockFile  = "lock"
	userFile  = "user.json" // says who has the lock; a locked file cannot be read on Windows
	maxUser   = 4 << 10
	holdsWait = 200 * time.Millisecond // for a process that has just ended
)

// inUse is the text of an error that is ErrInUse.
type inUse string

func (e inUse) Error() string { return string(e) }

func (inUse) Is(target error) bool { return target == ErrInUse }

// user is the process that uses a folder.
type user struct {
	PID  int    `json:"pid"`
	Host string `json:"host,omitempty"`
}

// hold takes a folder for one Server until release, or the end of the process.
func hold(dir string) (release func(), err error) {
	ctx, stop := context.WithTimeout(context.Background(), holdsWait)
	defer stop()
	unlock, err := ownfile.Lock(ctx, filepath.Join(dir, lockFile))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, inUse(fmt.Sprintf("the folder %s is in use by %s", dir, userOf(dir)))
	}
	if err != nil {
		return nil, fmt.Errorf("the folder for keys and logins: %w", err)
	}
	self := user{PID: os.Getpid()}
	self.Host, _ = os.Hostname()
	raw, err := jsonx.Marshal(self)
	if err == nil {
		err = ownfile.Replace(filepath.Join(dir, userFile), append(raw, '\n'))
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("the folder for keys and logins: %w", err)
	}
	return unlock, nil
}

// userOf describes the process that uses a folder.
func userOf(dir string) string {
	var u user
	raw, err := ownfile.ReadNow(filepath.Join(dir, userFile), maxUser)
	if err != nil || jsonx.Unmarshal(raw, &u) != nil || u.PID <= 0 {
		return "another process"
	}
	if here, _ := os.Hostname(); u.Host != here {
		return fmt.Sprintf("the process %d on %.100q", u.PID, u.Host)
	}
	return fmt.Sprintf("the process %d", u.PID)
}
