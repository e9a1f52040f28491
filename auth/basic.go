package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Basic is a [Verifier] of user names and passwords (RFC 7617). One of Users and File is required.
// Over plain HTTP anybody on the network between can read the password.
//
// A password that was accepted is accepted again without its slow hash, until the entry of its
// user changes. Four slow hashes are computed at a time; a request that waits more than 5 seconds
// for its turn gets 503. A wrong password that begins as an API key does is left to the next verifier.
type Basic struct {
	// Users are password hashes by user name, as [HashPassword] makes them.
	Users map[string]string

	// File has one user per line, as htpasswd -B writes it: name, hash, and scopes if there are
	// any, with colons between them ("alice:$argon2id$...:read write"). It is checked for changes
	// once a second. A file that was deleted has no users, and an invalid line is not a user; while
	// the file cannot be read, the entries read last stay valid.
	File string

	// Logger logs errors in File after its first reading. If nil, they are not logged.
	Logger *slog.Logger

	file  watched[*users]
	once  sync.Once
	key   []byte         // for the hashes of right passwords
	right *cache[string] // the entry's hash that the password was right for
	slots chan struct{}  // of slow hashes
}

type user struct {
	hash      string
	scopes    []string
	principal *Principal // of all requests of the user
}

// users are the users of a file, and a hash that is computed for unknown names, so that these take
// as long.
type users struct {
	byName map[string]user
	decoy  string
}

const (
	maxPassword = 1024
	maxHashing  = 4
	hashingWait = 5 * time.Second
)

// Fault returns why File, as it is now, is not, or not all, in use: it cannot be read, is gone, or has
// invalid lines, which follow in lines of their own. It returns nil if there is no fault.
func (b *Basic) Fault() error {
	if _, err := b.known(); err != nil {
		return err
	}
	return b.file.fault()
}

// Verify implements [Verifier].
func (b *Basic) Verify(r *http.Request) (*Principal, error) {
	c, err := credentialOf(r)
	switch {
	case err != nil:
		return nil, err
	case !strings.EqualFold(c.scheme, "Basic"):
		return nil, ErrNoCredential
	}
	name, password, ok := c.password()
	isKey := strings.HasPrefix(password, keyPrefix) // maybe; APIKeys know
	switch {
	case isKey && name == "":
		return nil, ErrNoCredential
	case !ok || checkName("", name) != nil || len(password) > maxPassword:
		return nil, fmt.Errorf("%w: Basic needs NAME:PASSWORD in base64", errMalformed)
	}
	all, err := b.known()
	if err != nil {
		return nil, err
	}
	b.once.Do(b.prepare)
	u, there := all.byName[name]
	if !there {
		u.hash = all.decoy
	}
	good, err := b.matches(r.Context(), u.hash, name, password)
	switch {
	case err != nil:
		return nil, err
	case there && good:
	case isKey:
		return nil, fmt.Errorf("%w: %w", errNoUser, ErrNoCredential)
	default:
		return nil, errNoUser
	}
	return u.principal, nil
}

var errNoUser = errors.New("the user name or the password is wrong")

// password reads the name and the password of Basic credentials.
func (c credential) password() (name, password string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(c.value)
	name, password, ok = strings.Cut(string(raw), ":")
	return name, password, ok && err == nil && utf8.Valid(raw)
}

func (b *Basic) prepare() {
	b.key = make([]byte, sha256.Size)
	_, _ = rand.Read(b.key) // it never fails
	b.right, b.slots = newCache[string](maxKnown), make(chan struct{}, maxHashing)
}

// matches reports whether a password is that of a hash.
func (b *Basic) matches(ctx context.Context, hash, name, password string) (bool, error) {
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte(name + ":" + password))
	sum := [sha256.Size]byte(mac.Sum(nil))
	if before, ok := b.right.get(sum); ok && before == hash {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, hashingWait)
	defer cancel()
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return false, fmt.Errorf("%w: too many passwords at once", ErrUnavailable)
	}
	good, err := checkPassword(hash, password)
	if good {
		b.right.put(sum, hash)
	}
	return good, err
}

func (b *Basic) known() (*users, error) {
	return b.file.get(b.File, b.Logger, func(content []byte) (*users, error) {
		all := &users{byName: map[string]user{}}
		add := func(name string, u user) error {
			switch {
			case checkName("", name) != nil || strings.Contains(name, ":"):
				return fmt.Errorf("%q is not a valid user name", text.Short(name))
			case !isPasswordHash(u.hash):
				return fmt.Errorf("user %q: the hash is neither argon2id nor bcrypt", text.Short(name))
			}
			for _, s := range u.scopes {
				if !oauth.IsScope(s) {
					return fmt.Errorf("user %q: %q is not a scope", text.Short(name), text.Short(s))
				}
			}
			if _, twice := all.byName[name]; twice {
				all.byName[name] = user{} // neither of the two is an entry
				return fmt.Errorf("user %q is listed twice", text.Short(name))
			}
			u.principal = &Principal{ID: "basic#" + name, Scheme: "basic", Subject: name, Name: name, Scopes: u.scopes}
			all.byName[name], all.decoy = u, u.hash
			return nil
		}
		var faults faults
		for name, hash := range b.Users {
			if err := add(name, user{hash: hash}); err != nil {
				faults.add("%w", err)
			}
		}
		n := 0
		for line := range bytes.Lines(content) {
			n++
			text := strings.TrimSpace(string(line))
			if text == "" || text[0] == '#' {
				continue
			}
			name, rest, _ := strings.Cut(text, ":")
			hash, list, _ := strings.Cut(rest, ":")
			if err := add(name, user{hash: hash, scopes: strings.Fields(list)}); err != nil {
				faults.add("line %d: %w", n, err)
			}
		}
		return all, faults.err()
	})
}

func (b *Basic) check(string) error {
	if b.File == "" && b.Users == nil {
		return errors.New("Basic: neither Users nor File is set")
	}
	if _, err := b.known(); err != nil {
		return fmt.Errorf("Basic: %w", err)
	}
	return nil
}

// Argon2id of the passwords that are hashed here, and the bounds of those that come from
// elsewhere.
const (
	argonMemory, argonTime, argonThreads = 19 << 10, 2, 1 // KiB, passes
	maxArgonMemory, maxArgonTime         = 256 << 10, 16
	argonPrefix                          = "$argon2id$v=19$"
)

// HashPassword returns the hash of a password: argon2id in the form of its reference
// implementation, "$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH".
func HashPassword(password string) (string, error) {
	if password == "" || len(password) > maxPassword {
		return "", fmt.Errorf("a password has 1 to %d bytes", maxPassword)
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	sum := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, 32)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%sm=%d,t=%d,p=%d$%s$%s", argonPrefix, argonMemory, argonTime, argonThreads, b64.EncodeToString(salt), b64.EncodeToString(sum)), nil
}

// argon is a hash in its parts.
type argon struct {
	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

func parseArgon(hash string) (a argon, ok bool) {
	rest, ok := strings.CutPrefix(hash, argonPrefix)
	parts := strings.Split(rest, "$")
	if !ok || len(parts) != 3 {
		return a, false
	}
	numbers := strings.Split(parts[0], ",")
	if len(numbers) != 3 {
		return a, false
	}
	var n [3]uint64
	for i, name := range []string{"m=", "t=", "p="} {
		text, ok := strings.CutPrefix(numbers[i], name)
		v, err := strconv.ParseUint(text, 10, 32)
		if !ok || err != nil || v == 0 {
			return a, false
		}
		n[i] = v
	}
	var err1, err2 error
	a.salt, err1 = base64.RawStdEncoding.DecodeString(parts[1])
	a.sum, err2 = base64.RawStdEncoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil || len(a.salt) < 8 || len(a.salt) > 64 || len(a.sum) < 16 || len(a.sum) > 64 ||
		n[0] > maxArgonMemory || n[1] > maxArgonTime || n[2] > 16 {
		return a, false
	}
	a.memory, a.time, a.threads = uint32(n[0]), uint32(n[1]), uint8(n[2])
	return a, true
}

func isPasswordHash(hash string) bool {
	if _, ok := parseArgon(hash); ok {
		return true
	}
	cost, err := bcrypt.Cost([]byte(hash))
	return err == nil && len(hash) == 60 && cost <= 16
}

// checkPassword reports whether a password is that of a hash.
func checkPassword(hash, password string) (bool, error) {
	if hash == "" {
		return false, nil // there are no users at all
	}
	if a, ok := parseArgon(hash); ok {
		sum := argon2.IDKey([]byte(password), a.salt, a.time, a.memory, a.threads, uint32(len(a.sum)))
		return subtle.ConstantTimeCompare(sum, a.sum) == 1, nil
	}
	switch err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)); {
	case err == nil:
		return true, nil
	case errors.Is(err, bcrypt.ErrMismatchedHashAndPassword), errors.Is(err, bcrypt.ErrPasswordTooLong):
		return false, nil
	default:
		return false, err
	}
}
