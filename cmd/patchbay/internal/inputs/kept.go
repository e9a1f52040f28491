package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
)

// The vault keeps the answers to inputs, one list per file. A file may change, as those of
// repositories do, and must not get an answer for a server that the person did not mean: each
// answer is kept with the servers that it was given to.

// Kept is an answer in the vault.
type Kept struct {
	ID    string
	Text  auth.Secret
	For   []string // servers that may have it, see [Use]
	Since time.Time
}

const (
	maxKeptUses = 32       // per answer; the oldest is dropped
	maxKeptText = 64 << 10 // bytes
	keepTime    = 10 * time.Second
)

// inputsOf returns the name, in the vault, of the answers to the inputs of a file.
func inputsOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	return "inputs of " + abs, err
}

// Use returns the identity that an answer is given to: the origin of a URL, or a command as it is
// written, with its arguments, folder and environment.
func Use(s config.Server) string {
	h := sha256.New()
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		fmt.Fprintf(h, "%s://%s", u.Scheme, u.Host)
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	for _, v := range s.Values() {
		if v.Member != "headers" {
			fmt.Fprintf(h, "%q %q %q\n", v.Member, v.Name, v.Written)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// AllKept returns the answers that are kept for a file.
func AllKept(v *vault.Vault, path string) ([]Kept, error) {
	name, err := inputsOf(path)
	if err != nil {
		return nil, err
	}
	text, err := v.Secret(name)
	if err != nil || text == "" {
		return nil, err
	}
	var list []keptLine
	if json.Unmarshal([]byte(text), &list) != nil { // the error could show the text
		return nil, errors.New("they are not in a known format; a newer patchbay may have written them")
	}
	out := make([]Kept, len(list))
	for i, l := range list {
		out[i] = Kept{l.ID, auth.Secret(l.Text), l.For, l.Since}
	}
	return out, nil
}

// keptLine is a Kept that marshals its text: the form that is encrypted.
type keptLine struct {
	ID    string    `json:"id"`
	Text  string    `json:"text"`
	For   []string  `json:"for"`
	Since time.Time `json:"since"`
}

// changeKept replaces the answers that are kept for a file, one change at a time.
func changeKept(ctx context.Context, v *vault.Vault, path string, do func([]Kept) []Kept) error {
	ctx, cancel := context.WithTimeoutCause(ctx, keepTime, fmt.Errorf("another process has locked the vault for %v", keepTime))
	defer cancel()
	name, err := inputsOf(path)
	if err != nil {
		return err
	}
	unlock, err := v.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := AllKept(v, path)
	if err != nil {
		return err
	}
	before := len(list)
	list = do(list)
	if len(list) == 0 {
		if before == 0 {
			return nil
		}
		return v.SetSecret(ctx, name, "")
	}
	lines := make([]keptLine, len(list))
	for i, k := range list {
		lines[i] = keptLine{k.ID, string(k.Text), k.For, k.Since}
	}
	text, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	return v.SetSecret(ctx, name, auth.Secret(text))
}

// Kept returns the kept answer to an input of a server, or nil if there is none.
func (a *Answers) Kept(s config.Server, in config.Input) (*Kept, error) {
	v, err := vault.Open("", nil)
	if err != nil {
		return nil, err
	}
	list, err := AllKept(v, entry.File(s))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(k Kept) bool { return k.ID == in.ID })
	if i < 0 || len(in.Options) > 0 && !slices.Contains(in.Options, string(list[i].Text)) {
		return nil, nil
	}
	return &list[i], nil
}

// keepAnswer keeps a person's answer for a server. The caller holds mu. An answer that cannot be
// kept lasts for this run.
func (a *Answers) keepAnswer(s config.Server, in config.Input, got *answer) {
	use := Use(s)
	got.uses = append(slices.Clone(got.uses), use)
	if s.Source == "" || len(got.text) > maxKeptText {
		return
	}
	v, err := vault.Open("", nil)
	if err == nil {
		err = changeKept(a.Context(), v, entry.File(s), func(list []Kept) []Kept {
			k := Kept{ID: in.ID, Text: got.text, Since: time.Now().UTC().Truncate(time.Second)}
			if i := slices.IndexFunc(list, func(k Kept) bool { return k.ID == in.ID }); i >= 0 {
				if list[i].Text == got.text {
					k = list[i]
				}
				list = slices.Delete(list, i, i+1)
			}
			k.For = append(slices.DeleteFunc(k.For, func(old string) bool { return old == use }), use)
			k.For = k.For[max(0, len(k.For)-maxKeptUses):]
			return append(list, k)
		})
	}
	switch {
	case err != nil:
		a.Talk.Note("warning: the answer is used only for this run, as it cannot be stored: %v", err)
	case !a.told:
		a.told = true
		a.Talk.Note("stored in %s; patchbay config inputs --forget deletes it", v.Where())
	}
}

// Forget deletes the answers that are kept for inputs of a file, all of them without ids, and
// returns the ids of those that existed.
func Forget(ctx context.Context, path string, ids ...string) (gone []string, err error) {
	v, err := vault.Open("", nil)
	if err != nil {
		return nil, err
	}
	err = changeKept(ctx, v, path, func(list []Kept) []Kept {
		return slices.DeleteFunc(list, func(k Kept) bool {
			if len(ids) > 0 && !slices.Contains(ids, k.ID) {
				return false
			}
			gone = append(gone, k.ID)
			return true
		})
	})
	return gone, err
}

// Refusable returns the inputs of a server that a person has answered, now or before; none if s is
// nil.
func (a *Answers) Refusable(s *config.Server) (list []config.Input) {
	if s == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, in := range s.Inputs() {
		if got, ok := a.known[in.ID]; ok && got.err == nil && got.from != bySetting {
			list = append(list, in)
		}
	}
	return list
}

// AskAgain asks again for the inputs whose answers the server refused. It reports whether there is
// a new answer to try.
func (a *Answers) AskAgain(s config.Server) bool {
	list := a.Refusable(&s)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(list) == 0 || a.mute || a.Keys() == nil {
		return false
	}
	a.Talk.Note("%s refused the answers; enter new ones, or ctrl-D", s.Name)
	for _, in := range list {
		text, err := a.Ask("", in, false)
		if err != nil {
			return false
		}
		got := answer{text: auth.Secret(text), from: byPerson}
		a.keepAnswer(s, in, &got)
		a.know(in, got)
	}
	return true
}

// Unlearn drops from this run the answers that a server refused, because another process may have
// kept better ones.
func (a *Answers) Unlearn(s config.Server) {
	for _, in := range a.Refusable(&s) {
		a.mu.Lock()
		delete(a.known, in.ID)
		a.mu.Unlock()
	}
}
