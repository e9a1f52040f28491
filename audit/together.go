package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// NodeLog is one of several logs for [VerifyTogether].
type NodeLog struct {
	Files   []string       // in the order of [Files]
	Options *VerifyOptions // nil: defaults
}

// TogetherOptions configure [VerifyTogether]. Nil and the zero value mean defaults.
type TogetherOptions struct {
	// Without names nodes, or has the ids of logs, that others have noted and that are not given on purpose. Without it, a
	// log that is not given is a fault.
	Without []string

	// Copied is when copying of the logs began. The copy of a log may lack lines at its end that others have noted since. Zero means
	// that no such line may be missing.
	Copied time.Time
}

// VerifyTogether verifies logs of nodes that have noted each other's checkpoints, see [Others]: first each log as [Verify] does, then
// whether each has, at the numbers that other logs have noted, the lines with those hashes. A log that was cut or replaced has a fault in
// its report, with the place of the note; the fault of a log that is not given is in the report of one that has noted it. Notes about
// lines before the first one of a log, whose older files are gone, are not a fault. The reports are in the order of the logs.
//
// A change is found before the last line that another log has noted. Lines after that are as safe as in a log that is verified alone.
func VerifyTogether(logs []NodeLog, o *TogetherOptions) ([]*Report, error) {
	if o == nil {
		o = &TogetherOptions{}
	}
	list := make([]*verifier, len(logs))
	for i, log := range logs {
		v := newVerifier(log.Options)
		v.together = &together{files: log.Files, notes: map[origin][]mention{}, names: map[string]bool{}}
		if err := v.verify(log.Files); err != nil {
			return nil, err
		}
		list[i] = v
	}
	// A log that is written meanwhile has what others have noted so far: it is read again after them.
	found := make([][]mentionBy, len(list))
	for i, by := range list {
		for _, of := range slices.SortedFunc(maps.Keys(by.together.notes), compareOrigins) {
			by.match(list, i, of, o, found)
		}
	}
	reports := make([]*Report, len(list))
	for i, v := range list {
		if err := v.compare(list, found[i], o); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		reports[i] = &v.report
	}
	return reports, nil
}

const (
	maxOrigins = 1000 // logs that a log notes
	maxNames   = 100  // of a node in its log
)

// together is what a log has noted of others.
type together struct {
	files []string
	notes map[origin][]mention
	names map[string]bool // of the node that writes the log
	first place
}

// origin is a log that another one has noted.
type origin struct{ node, log string }

func compareOrigins(a, b origin) int {
	return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.log, b.log))
}

// mention is a line of kind [CheckpointOther]. There may be one for every ten seconds of a year.
type mention struct {
	seq        int64 // of the line that it notes
	hash       [32]byte
	at         int64 // seconds; when it was noted
	file, line int32 // where
}

// sum returns the bytes of a hash of a line.
func sum[T string | []byte](text T) (out [32]byte, ok bool) {
	if len(text) != hashLen || string(text[:len(hashPrefix)]) != hashPrefix {
		return out, false
	}
	n, err := hex.Decode(out[:], []byte(text[len(hashPrefix):]))
	return out, err == nil && n == len(out)
}

// see takes a line that is as it was written.
func (t *together) see(s *scanned) {
	if t.first.file == "" {
		t.first = s.at
	}
	switch s.kind {
	case string(Node), string(Checkpoint):
		if name, err := jsonx.Unquote(s.node); err == nil && (len(t.names) < maxNames) {
			t.names[name] = true
		}
		return
	case string(CheckpointOther):
	default:
		return
	}
	var c noted
	var at time.Time
	if jsonx.Unmarshal(s.detail, &c) != nil || jsonx.Unmarshal(s.time, &at) != nil || c.Seq <= 0 {
		return
	}
	hash, ok := sum(c.Hash)
	of := origin{c.Node, c.Log}
	if !ok || t.notes[of] == nil && len(t.notes) >= maxOrigins {
		return
	}
	file := slices.Index(t.files, s.at.file)
	t.notes[of] = append(t.notes[of], mention{c.Seq, hash, at.Unix(), int32(file), int32(s.at.line)})
}

// place returns where a note stands.
func (t *together) place(n mention) string { return fmt.Sprintf("%s:%d", t.files[n.file], n.line) }

// mentionBy is a mention with the index of the log that has it.
type mentionBy struct {
	mention
	by int
}

// match finds the log that a log has noted, and adds the notes to those that are to be found in it. Without one, that is a fault.
func (v *verifier) match(list []*verifier, by int, of origin, o *TogetherOptions, found [][]mentionBy) {
	notes := v.together.notes[of]
	var exact, named, same []int // logs with the node and the id; with the node; with the id
	for i, other := range list {
		id, name := other.report.Log == of.log, other.together.names[of.node]
		switch {
		case i == by:
		case id && name:
			exact = append(exact, i)
		case name:
			named = append(named, i)
		case id && of.log != "":
			same = append(same, i)
		}
	}
	if exact == nil {
		exact = same // its node had another name
	}
	for _, i := range exact {
		for _, n := range notes {
			found[i] = append(found[i], mentionBy{n, by})
		}
	}
	if exact != nil || slices.Contains(o.Without, of.node) || of.log != "" && slices.Contains(o.Without, of.log) {
		return
	}
	last := notes[len(notes)-1]
	if named == nil {
		v.faultAt(place{v.together.files[last.file], int(last.line), 0}, NotGiven, "line %d of the log%s of node %q was noted here, and no log of that node is given: verify it too", last.seq, id(of.log), clipped(of.node, maxChosen))
		return
	}
	other := list[named[0]]
	other.faultAt(other.together.first, Replaced, "this is the log%s; %s has noted line %d of the log%s of the same node: this log has taken its place. Verify that one too if it was moved away",
		id(other.report.Log), v.together.place(last), last.seq, id(of.log))
}

// id words the id of a log behind "the log".
func id(log string) string {
	if log == "" {
		return " without an id"
	}
	return " " + clipped(log, maxChosen)
}

// finding is what the notes of one log about another one say.
type finding struct {
	agreed  int64     // the last line that is right; 0: none
	wrong   mentionBy // the first one that is not
	at      place     // where
	wrongs  int
	older   int
	beyond  mentionBy // the first one after the end of the log
	beyonds int
	since   int // after copying began
}

// compare looks for the lines that other logs have noted.
func (v *verifier) compare(list []*verifier, marks []mentionBy, o *TogetherOptions) error {
	slices.SortStableFunc(marks, func(a, b mentionBy) int { return cmp.Compare(a.seq, b.seq) })
	all := make([]finding, len(list))
	next, begun := 0, int64(0)
	end := place{line: 1}
	see := func(at place, hash []byte) {
		own, ok := sum(hash)
		for ; next < len(marks) && marks[next].seq <= at.seq; next++ {
			m := marks[next]
			out := &all[m.by]
			switch {
			case m.seq < at.seq && begun == 0:
				out.older++
			case m.seq < at.seq: // it is missing in the middle, which Verify has found
			case ok && own == m.hash:
				v.report.Agreed++
				out.agreed = m.seq
			default:
				if out.wrongs == 0 {
					out.wrong, out.at = m, at
				}
				out.wrongs++
			}
		}
		begun = max(begun, at.seq)
	}
	for _, name := range v.together.files {
		if len(marks) == 0 {
			break
		}
		err := eachLine(name, func(line int, text []byte) {
			h := place{file: name, line: line, seq: seqOf(text)}
			end = place{name, line + 1, 0}
			if h.seq <= begun {
				return
			}
			if begun == 0 && h.seq > 1 { // the line before it is known by its hash
				prev, _ := jsonx.Lookup(text, "prev")
				before := h
				before.seq--
				see(before, bytes.Trim(prev, `"`))
			}
			hash, _ := jsonx.Lookup(text, "hash")
			see(h, bytes.Trim(hash, `"`))
		})
		if err != nil && !errors.As(err, new(irregular)) { // which Verify has found
			return err
		}
	}
	for _, m := range marks[next:] {
		out := &all[m.by]
		if !o.Copied.IsZero() && m.at >= o.Copied.Unix() {
			out.since++
			continue
		}
		if out.beyonds == 0 {
			out.beyond = m
		}
		out.beyonds++
	}
	end.seq = begun + 1
	for by := range all {
		v.judgeNotes(list[by].together, &all[by], end)
	}
	if len(marks) == 0 && len(list) > 1 {
		v.noteAt(v.together.first, Incomplete, "no other log has noted a line of this one, so they say nothing about it")
	}
	return nil
}

// judgeNotes reports what the notes of one other log say.
func (v *verifier) judgeNotes(by *together, out *finding, end place) {
	if out.older > 0 {
		v.noteAt(v.together.first, Incomplete, "%s has noted lines before this one: %d notes are older than the log", by.files[len(by.files)-1], out.older)
	}
	if out.since > 0 {
		v.noteAt(end, Incomplete, "%s has noted later lines, since copying began: %d notes are newer than the log", by.files[len(by.files)-1], out.since)
	}
	if out.wrongs > 0 {
		where := fmt.Sprintf("up to line %d they agree", out.agreed)
		if out.agreed == 0 || out.agreed > out.wrong.seq {
			where = "they agree on no line before it"
		}
		if out.wrongs > 1 {
			where += fmt.Sprintf(", and %d more notes differ", out.wrongs-1)
		}
		v.faultAt(out.at, Replaced, "%s has noted another hash of line %d, at %s; %s. %s", by.place(out.wrong.mention), out.wrong.seq, stampOf(out.wrong.mention), where, v.blame(by, out.wrong.mention))
	}
	if out.beyonds > 0 {
		next := "If this file was copied before that, copy it again"
		if v.key != nil && !v.signed(by, out.beyond.mention) {
			next = v.blame(by, out.beyond.mention)
		}
		v.faultAt(end, Cut, "the end is gone: %s has noted line %d, at %s. %s", by.place(out.beyond.mention), out.beyond.seq, stampOf(out.beyond.mention), next)
	}
}

func stampOf(n mention) string { return time.Unix(n.at, 0).UTC().Format(time.RFC3339) }

// blame says which of two logs is wrong, by the signature of a mention.
func (v *verifier) blame(by *together, n mention) string {
	switch {
	case v.key == nil:
		return "One of the two was changed; with the public key of this log it can be said which one"
	case v.signed(by, n):
		return "The key of this log has signed the note, so this log was changed: look for a copy of these lines, and at the machine of the node"
	}
	return fmt.Sprintf("The note is signed with the key %.40q, which is not given for this log: another program has used the name of the node, or its key was replaced", by.read(n).Key)
}

// signed reports whether a key of the log has signed what another one has noted.
func (v *verifier) signed(by *together, n mention) bool {
	c := by.read(n)
	signed := &Signed{Hash: c.Hash, Key: c.Key, Seq: c.Seq, Signature: c.Signature}
	return slices.ContainsFunc(append([]ed25519.PublicKey{v.key}, v.earlier...), func(key ed25519.PublicKey) bool { return signed.check(c.Node, key) == nil })
}

// read returns what a line has noted.
func (t *together) read(n mention) (c noted) {
	_ = eachLine(t.files[n.file], func(line int, text []byte) {
		if line == int(n.line) {
			detail, _ := jsonx.Lookup(text, "detail")
			_ = jsonx.Unmarshal(detail, &c)
		}
	})
	return c
}

// eachLine calls f with the lines of a file that have an end, without it. Lines that are too long are left out.
func eachLine(name string, f func(line int, text []byte)) error {
	file, err := openFile(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, maxLine)
	for n, long := 1, false; ; {
		text, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case err != nil:
			return err
		case !long:
			f(n, text[:len(text)-1])
		}
		n, long = n+1, false
	}
}
