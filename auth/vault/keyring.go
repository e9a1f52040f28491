package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Keyring stores short texts in a safe of the system.
type Keyring interface {
	Get(id string) (login.Secret, error)
	Set(id, text string) error
}

// SystemKeyring returns the keyring of the system. Where there is none, or if PATCHBAY_KEYRING is
// "off", its methods fail.
func SystemKeyring() Keyring { return systemKeyring{} }

type systemKeyring struct{}

const (
	service     = "patchbay"
	keyringTime = 3 * time.Second
)

var errNoKeyring = errors.New("no keyring responds; log in at the desktop, or move the folder away and log in again")

func (systemKeyring) Get(id string) (login.Secret, error) {
	got := make(chan string, 1)
	err := bounded(func() error {
		text, err := keyring.Get(service, id)
		got <- text
		return err
	})
	if err != nil {
		return "", err
	}
	return login.Secret(<-got), nil
}

func (systemKeyring) Set(id, text string) error {
	return bounded(func() error {
		if err := keyring.Set(service, id, text); err != nil {
			return err
		}
		// A key that cannot be read back would lose the vault.
		back, err := keyring.Get(service, id)
		if err == nil && back != text {
			err = errors.New("it returned a different text from the stored one")
		}
		return err
	})
}

// bounded calls a function of the keyring, which may wait for a person without end, and waits for
// it for keyringTime. A call that takes longer ends by itself, or with the program.
func bounded(do func() error) error {
	if !offered() {
		return errNoKeyring
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if errors.Is(err, keyring.ErrNotFound) {
			return errors.New("it is not there any more; move the folder away and log in again")
		}
		if err != nil {
			return fmt.Errorf("%w (%s)", errNoKeyring, text.Short(err.Error()))
		}
		return nil
	case <-time.After(keyringTime):
		return errNoKeyring
	}
}

// offered reports whether the system may have a keyring. Without a session bus, asking for one
// would start a bus.
func offered() bool {
	if os.Getenv("PATCHBAY_KEYRING") == "off" {
		return false
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return true
	}
	if at := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); at != "" {
		path, isPath := strings.CutPrefix(at, "unix:path=")
		path, _, _ = strings.Cut(path, ",")
		return !isPath || exists(path)
	}
	return exists(filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "bus"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
