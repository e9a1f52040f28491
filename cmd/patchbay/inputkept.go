package main

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
	"github.com/patchbay-dev/patchbay/config"
)

// What a person has answered to the inputs of an mcp.json is kept in the vault, a list for
// each file. A file may change, as those of repositories do, and must not get an answer for
// somebody whom the person had not in mind: each is kept with the servers it was given to.

// keptAnswer is an answer as it is kept.
type keptAnswer struct {
	ID    string
	Text  auth.Secret
	For   []string // servers that may have it, see [useOf]
	Since time.Time
}

const (
	maxKeptUses = 32       // of one answer; the oldest goes
	maxKeptText = 64 << 10 // bytes
	keepTime    = 10 * time.Second
)

// inputsOf names, in the vault, the answers to the inputs of a file.
func inputsOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	return "inputs of " + abs, err
}

// useOf stands for who gets an answer: the origin that a URL leads to, or a command as it is
// written, with its arguments, folder and environment.
func useOf(s config.Server) string {
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

// keptAnswers reads the answers that are kept for a file.
func keptAnswers(v *vault.Vault, path string) ([]keptAnswer, error) {
	name, err := inputsOf(path)
	if err != nil {
		return nil, err
	}
	text, err := v.Secret(name)
	if err != nil || text == "" {
		return nil, err
	}
	var list []keptLine
	if json.Unmarshal([]byte(text), &list) != nil { // its error could show the text
		return nil, errors.New("they were written by another patchbay; is this one too old?")
	}
	out := make([]keptAnswer, len(list))
	for i, l := range list {
		out[i] = keptAnswer{l.ID, auth.Secret(l.Text), l.For, l.Since}
	}
	return out, nil
}

// keptLine is a keptAnswer that shows its text: what is encrypted.
type keptLine struct {
	ID    string    `json:"id"`
	Text  string    `json:"text"`
	For   []string  `json:"for"`
	Since time.Time `json:"since"`
}

// changeKept replaces the answers that are kept for a file, one change at a time.
func changeKept(ctx context.Context, v *vault.Vault, path string, do func([]keptAnswer) []keptAnswer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, keepTime, fmt.Errorf("another process keeps the vault busy for %v", keepTime))
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
	list, err := keptAnswers(v, path)
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

// keptAnswer finds the answer to an input that is kept, nil if there is none that fits.
func (a *app) keptAnswer(s config.Server, in config.Input) (*keptAnswer, error) {
	v, err := vault.Open("", nil)
	if err != nil {
		return nil, err
	}
	list, err := keptAnswers(v, fileOf(s))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(k keptAnswer) bool { return k.ID == in.ID })
	if i < 0 || len(in.Options) > 0 && !slices.Contains(in.Options, string(list[i].Text)) {
		return nil, nil
	}
	return &list[i], nil
}

// keepAnswer keeps the answer of a person for a server. It is called with the lock of answers held.
// An answer that cannot be kept holds for this run.
func (a *app) keepAnswer(s config.Server, in config.Input, got *answer) {
	use := useOf(s)
	got.uses = append(slices.Clone(got.uses), use)
	if s.Source == "" || len(got.text) > maxKeptText {
		return
	}
	v, err := vault.Open("", nil)
	if err == nil {
		err = changeKept(a.ctx, v, fileOf(s), func(list []keptAnswer) []keptAnswer {
			k := keptAnswer{ID: in.ID, Text: got.text, Since: time.Now().UTC().Truncate(time.Second)}
			if i := slices.IndexFunc(list, func(k keptAnswer) bool { return k.ID == in.ID }); i >= 0 {
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
		a.talk.Note("warning: the answer holds for this run alone, as it cannot be kept: %v", err)
	case !a.answers.told:
		a.answers.told = true
		a.talk.Note("kept in %s; patchbay config inputs --forget forgets it", v.Where())
	}
}

// forgetAnswers forgets what is kept for inputs of a file, all of them if none is named, and
// returns the ids of those that there were.
func forgetAnswers(ctx context.Context, path string, ids ...string) (gone []string, err error) {
	v, err := vault.Open("", nil)
	if err != nil {
		return nil, err
	}
	err = changeKept(ctx, v, path, func(list []keptAnswer) []keptAnswer {
		return slices.DeleteFunc(list, func(k keptAnswer) bool {
			if len(ids) > 0 && !slices.Contains(ids, k.ID) {
				return false
			}
			gone = append(gone, k.ID)
			return true
		})
	})
	return gone, err
}

// refusable returns the inputs of a server, nil for none, whose answers a person has given,
// now or before.
func (a *app) refusable(s *config.Server) (list []config.Input) {
	if s == nil {
		return nil
	}
	a.answers.mu.Lock()
	defer a.answers.mu.Unlock()
	for _, in := range s.Inputs() {
		if got, ok := a.answers.known[in.ID]; ok && got.err == nil && got.from != bySetting {
			list = append(list, in)
		}
	}
	return list
}

// askAgain asks once more for what a server refuses, and tells whether there is something new
// to try.
func (a *app) askAgain(s config.Server) bool {
	list := a.refusable(&s)
	a.answers.mu.Lock()
	defer a.answers.mu.Unlock()
	if len(list) == 0 || !a.tty.in || !a.tty.err || a.answers.mute {
		return false
	}
	a.talk.Note("%s refuses what it was given; ctrl-D leaves it so", s.Name)
	for _, in := range list {
		text, err := a.askInput("", in, false)
		if err != nil {
			return false
		}
		got := answer{text: auth.Secret(text), from: byPerson}
		a.keepAnswer(s, in, &got)
		a.know(in, got)
	}
	return true
}

// unlearn forgets in this run what a server has refused: another process may have kept
// something better meanwhile.
func (a *app) unlearn(s config.Server) {
	for _, in := range a.refusable(&s) {
		a.answers.mu.Lock()
		delete(a.answers.known, in.ID)
		a.answers.mu.Unlock()
	}
}

// forgetting words the command that forgets what was given for inputs.
func forgetting(list []config.Input) string {
	words := []string{"patchbay", "config", "inputs", "--forget"}
	for _, in := range list {
		words = append(words, in.ID)
	}
	return shell(words)
}
