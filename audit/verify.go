package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// FaultKind says what is wrong with a line.
type FaultKind string

const (
	Edited     FaultKind = "edited"     // the line is not what was written
	Missing    FaultKind = "missing"    // lines before it were removed
	Reordered  FaultKind = "reordered"  // the line stands elsewhere than it was written
	Repeated   FaultKind = "repeated"   // the number of the line was there already
	Cut        FaultKind = "cut"        // the end of a file or of the log is gone
	Unsigned   FaultKind = "unsigned"   // checkpoints are missing
	Wrong      FaultKind = "checkpoint" // the checkpoint is wrong
	NotFile    FaultKind = "not a file" // a pipe, device or folder has the name of a file of the log
	Replaced   FaultKind = "replaced"   // another log has noted another line, or the node had another log
	NotGiven   FaultKind = "not given"  // the log has noted one that is not verified with it
	Recovered  FaultKind = "recovered"  // of notes: a fragment was removed at a start
	Incomplete FaultKind = "incomplete" // of notes: lines were dropped, or earlier files are not given
	Killed     FaultKind = "killed"     // of notes: a process has not closed the log before the next one opened it
)

// Fault is a place in a log where something is wrong, or worth a note.
type Fault struct {
	Kind FaultKind `json:"kind"`
	File string    `json:"file"`
	Line int       `json:"line"` // from 1; after a cut, the line that should follow
	Seq  int64     `json:"seq"`  // of the line, or of the first missing one; 0: not known
	Text string    `json:"text"`
}

func (f Fault) String() string {
	return fmt.Sprintf("%s:%d: seq %d: %s: %s", f.File, f.Line, f.Seq, f.Kind, f.Text)
}

// VerifyOptions configure [Verify]. Nil and the zero value mean defaults.
type VerifyOptions struct {
	// Key checks the checkpoints; a log without any is a fault. Nil means that they are not
	// checked: then a person who computed all hashes again is not noticed.
	Key ed25519.PublicKey

	// Earlier are the keys that signed the log before Key did, in any order. One that signs after
	// Key is a fault, and so is a log that Key has never signed.
	Earlier []ed25519.PublicKey

	// Heads are lines that the log must have, such as checkpoints that were kept elsewhere. Those
	// before the first line of the files do not count.
	Heads []Head
}

// Report is the outcome of [Verify].
type Report struct {
	Log         string    `json:"log,omitempty"` // the id of the log; empty: it was begun without one
	Files       int       `json:"files"`
	Lines       int64     `json:"lines"`
	First       int64     `json:"first"` // number of the first line
	Last        int64     `json:"last"`
	Hash        string    `json:"hash"` // of the last line
	Checkpoints int       `json:"checkpoints"`
	Signed      time.Time `json:"signed,omitzero"` // of the last checkpoint
	Unsigned    int64     `json:"unsigned"`        // lines after the last checkpoint
	Faults      []Fault   `json:"faults,omitempty"`
	Notes       []Fault   `json:"notes,omitempty"`
	More        int       `json:"more,omitzero"`   // faults beyond the first 10,000
	Agreed      int       `json:"agreed,omitzero"` // notes of other logs about lines of it that are right: see [VerifyTogether]
}

// Whole reports whether the log has no fault.
func (r *Report) Whole() bool { return len(r.Faults) == 0 }

const maxFaults = 10_000

// Verify checks a log: its files in the order of [Files]. The checkpoint that was written last, in
// FILE.head beside FILE, the current file of the log, must be in the log too; without FILE.head
// there is a note. If the last file is a rotated one, FILE must be among the files, unless it exists
// (then a note says that later files are not given) or FILE.head does not. A fault is part of the
// report; an error means that a file could not be read.
//
// Lines after the last checkpoint are not signed. To find that somebody cut them off, or replaced
// the end of the log together with FILE.head by an older state, compare with a copy of a checkpoint
// that was kept elsewhere: [VerifyOptions.Heads].
func Verify(files []string, o *VerifyOptions) (*Report, error) {
	v := newVerifier(o)
	if err := v.verify(files); err != nil {
		return nil, err
	}
	return &v.report, nil
}

// verify checks a log.
func (v *verifier) verify(files []string) error {
	if len(files) == 0 {
		return errors.New("audit log: no files to verify")
	}
	last := files[len(files)-1]
	path := logOf(last)
	head, err := readHead(path)
	later := false // files that are not given
	if path != last {
		_, statErr := os.Lstat(path)
		later = statErr == nil
	}
	switch {
	case later: // FILE.head is about them
	case err != nil:
		v.faultAt(place{headPath(path), 1, 0}, Wrong, "%v", err)
	case head != nil:
		if v.key != nil {
			if err := head.Checkpoint.check(head.Node, v.key); err != nil {
				v.faultAt(place{headPath(path), 1, head.Seq}, Wrong, "%v", err)
			}
		}
		v.heads[head.Seq] = append(v.heads[head.Seq], head.Hash)
	}
	for _, name := range files {
		if err := v.file(name); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	v.finish()
	end := v.current
	end.line, end.seq = max(1, end.line), v.next
	switch {
	case later:
		v.noteAt(end, Incomplete, "the files after this one are not given")
	case head != nil && path != last:
		v.faultAt(end, Cut, "%s is missing: it has the end of the log", path)
	case head == nil && err == nil && v.report.Checkpoints > 0:
		v.noteAt(place{headPath(path), 1, 0}, Incomplete, "the file is missing, so a cut end cannot be found")
	}
	return nil
}

// place is a line of a file.
type place struct {
	file string
	line int
	seq  int64
}

// scanned is a line as far as Verify reads it.
type scanned struct {
	at     place
	prev   string
	hash   string
	kind   string
	why    string // it is not what was written
	file   bool   // it is the first one of a file that is not the first
	start  bool   // of kind node: a process has opened the log
	stop   bool   // of kind node: it has closed the log
	node   []byte // members of checkpoints and of lines about the log
	time   []byte
	detail []byte
	sign   []byte
}

type verifier struct {
	key     ed25519.PublicKey
	earlier []ed25519.PublicKey
	own     bool // key has signed a checkpoint

	report Report
	sum    hash.Hash
	body   []byte
	digest [sha256.Size]byte
	hex    [hashLen]byte

	last    scanned // the last line in order
	next    int64   // number of the next line; 0: not known
	held    *scanned
	gaps    map[int64]place    // missing numbers so far, and where they should stand
	strays  map[int64]bool     // numbers of lines that were found too early
	heads   map[int64][]string // hashes of lines that are still to come
	started bool
	running bool // a process that closes the log at its end has opened it
	current place

	together *together // what the log notes of others; nil: it is verified alone
}

func newVerifier(o *VerifyOptions) *verifier {
	v := &verifier{sum: sha256.New(), gaps: map[int64]place{}, strays: map[int64]bool{}, heads: map[int64][]string{}}
	if o != nil {
		v.key, v.earlier = o.Key, o.Earlier
		for _, h := range o.Heads {
			v.heads[h.Seq] = append(v.heads[h.Seq], h.Hash)
		}
	}
	return v
}

func (v *verifier) faultAt(at place, kind FaultKind, format string, args ...any) {
	if len(v.report.Faults) == maxFaults {
		v.report.More++
		return
	}
	v.report.Faults = append(v.report.Faults, Fault{kind, at.file, at.line, at.seq, fmt.Sprintf(format, args...)})
}

func (v *verifier) noteAt(at place, kind FaultKind, format string, args ...any) {
	if len(v.report.Notes) < maxFaults {
		v.report.Notes = append(v.report.Notes, Fault{kind, at.file, at.line, at.seq, fmt.Sprintf(format, args...)})
	}
}

// file checks the lines of a file.
func (v *verifier) file(name string) error {
	f, err := openFile(name)
	if errors.As(err, new(irregular)) {
		v.flush()
		v.faultAt(place{name, 1, v.next}, NotFile, "it is not a regular file, and was not read; remove it, or move it away")
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return v.lines(name, f)
}

// lines checks the lines of a file that is open.
func (v *verifier) lines(name string, f io.Reader) error {
	v.report.Files++
	v.current = place{file: name}
	r := bufio.NewReaderSize(f, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		v.current.line++
		switch {
		case err == nil:
			s := v.scan(line[:len(line)-1])
			v.push(&s)
		case errors.Is(err, bufio.ErrBufferFull):
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err != nil && err != io.EOF {
				return err
			}
			s := scanned{at: v.current, why: "it is longer than 1 MiB"}
			v.push(&s)
		case err == io.EOF && len(line) > 0:
			v.flush()
			at := v.current
			at.seq = v.next
			v.faultAt(at, Cut, "the last line has no end: its writer was stopped in the middle of it, or the end was cut off")
			return nil
		case err == io.EOF:
			return nil
		default:
			return err
		}
	}
}

// scan reads a line by its bytes, and checks its own hash.
func (v *verifier) scan(line []byte) (s scanned) {
	s.at = v.current
	v.report.Lines++
	var hash, prev []byte
	sorted, seen, format := true, false, 0
	v.body = jsonx.Filter(v.body[:0], line, func(name []byte, value json.RawMessage) bool {
		switch string(name) {
		case "hash":
			sorted, seen = sorted && !seen, true
			hash = value
			return false
		case "prev":
			prev = value
		case "seq":
			s.at.seq, _ = strconv.ParseInt(string(value), 10, 64)
		case "event":
			s.file = string(value) == `"file"` || string(value) == `"gone"`
			s.start, s.stop = string(value) == `"start"`, string(value) == `"stop"`
		case "kind":
			s.kind = kindOf(value)
		case "node":
			s.node = value
		case "time":
			s.time = value
		case "detail":
			s.detail = value
		case "checkpoint":
			s.sign = value
		case "v":
			format, _ = strconv.Atoi(string(value))
		}
		sorted = sorted && seen == (string(name) > "hash")
		return true
	})
	const hashMember = len(`"hash":"",`) + hashLen
	switch {
	case format > version:
		s.why = newer(format).Error()
		return s
	case len(hash) != hashLen+2 || len(prev) != hashLen+2 || !sorted || s.at.seq <= 0 || len(line) != len(v.body)+hashMember:
		s.why = "it is not a line of an audit log"
		return s
	}
	hash, prev = hash[1:len(hash)-1], prev[1:len(prev)-1]
	v.sum.Reset()
	v.sum.Write(prev)
	v.sum.Write(v.body)
	copy(v.hex[:], hashPrefix)
	hex.Encode(v.hex[len(hashPrefix):], v.sum.Sum(v.digest[:0]))
	if !bytes.Equal(v.hex[:], hash) {
		s.why = "its content does not have its hash"
	}
	s.hash, s.prev = string(hash), string(prev)
	if s.kind == string(Node) || s.kind == string(Checkpoint) || s.kind == string(CheckpointOther) && v.together != nil {
		s.node, s.time, s.detail, s.sign = slices.Clone(s.node), slices.Clone(s.time), slices.Clone(s.detail), slices.Clone(s.sign)
	} else {
		s.node, s.time, s.detail, s.sign = nil, nil, nil, nil
	}
	return s
}

// kindOf returns the kinds that Verify tells apart.
func kindOf(value []byte) string {
	switch string(value) {
	case `"checkpoint"`:
		return string(Checkpoint)
	case `"node"`:
		return string(Node)
	case `"checkpoint.other"`:
		return string(CheckpointOther)
	}
	return ""
}

// push takes the next line. A line is judged when the one after it is known, because that tells a
// line that stands too early from lines that are missing.
func (v *verifier) push(s *scanned) {
	if held := v.held; held != nil {
		v.judge(held, s)
	}
	next := *s
	v.held = &next
}

func (v *verifier) flush() {
	if v.held != nil {
		v.judge(v.held, nil)
		v.held = nil
	}
}

// judge compares a line with the one before it; after is the line after it, or nil.
func (v *verifier) judge(s, after *scanned) {
	if !v.started {
		v.begin(s)
	}
	known := s.at.seq > 0 && s.hash != ""
	if s.why != "" {
		if at := s.at; !known || s.at.seq != v.next { // its number may be what was edited
			at.seq = v.next
			v.faultAt(at, Edited, "%s", s.why)
			v.lost(after)
			return
		}
		v.faultAt(s.at, Edited, "%s", s.why)
		v.accept(s)
		return
	}
	for v.strays[v.next] && s.at.seq != v.next {
		delete(v.strays, v.next)
		v.next++
		v.last.hash = "" // it stands elsewhere
	}
	switch {
	case s.at.seq == v.next:
		if v.last.hash != "" && s.prev != v.last.hash {
			v.faultAt(v.last.at, Edited, "its hash is not the one that the next line continues: the line was replaced")
		}
		v.accept(s)
	case s.at.seq > v.next && after != nil && after.at.seq == v.next+1 && after.why == "":
		v.faultAt(s.at, Reordered, "it stands where line %d belongs", v.next)
		v.gaps[v.next] = place{s.at.file, s.at.line, v.next}
		v.strays[s.at.seq] = true
		v.sight(s)
		v.next++
		v.last.hash = ""
	case s.at.seq > v.next && after != nil && after.at.seq == v.next && after.why == "":
		v.faultAt(s.at, Reordered, "it stands before line %d", v.next)
		v.strays[s.at.seq] = true
		v.sight(s)
	case s.at.seq > v.next:
		v.gap(s)
		v.accept(s)
	default:
		if _, missing := v.gaps[s.at.seq]; missing {
			delete(v.gaps, s.at.seq)
			v.faultAt(s.at, Reordered, "it stands after line %d", v.next-1)
		} else {
			v.faultAt(s.at, Repeated, "the line is in the log already")
		}
		v.sight(s)
	}
}

// begin takes the first line.
func (v *verifier) begin(s *scanned) {
	v.started = true
	v.next = 1
	v.last = scanned{hash: genesis, at: s.at}
	if s.why == "" && s.at.seq > 1 {
		if s.file {
			v.noteAt(s.at, Incomplete, "the files before this one are not given, so lines 1 to %d are not checked", s.at.seq-1)
		} else {
			v.faultAt(place{s.at.file, s.at.line, 1}, Missing, "the log begins with line %d, which is not the first of a file: lines before it were removed", s.at.seq)
		}
		v.next, v.last.hash = s.at.seq, ""
	}
	v.report.First = v.next
}

// gap notes the numbers before a line.
func (v *verifier) gap(s *scanned) {
	for seq := v.next; seq < s.at.seq; seq++ {
		if v.strays[seq] {
			delete(v.strays, seq)
			continue
		}
		if len(v.gaps) >= 10*maxFaults {
			v.faultAt(place{s.at.file, s.at.line, seq}, Missing, "lines up to %d are gone", s.at.seq-1)
			break
		}
		v.gaps[seq] = place{s.at.file, s.at.line, seq}
	}
	v.last.hash = ""
}

// lost goes on after a line that cannot be read: with the line after it.
func (v *verifier) lost(after *scanned) {
	if after != nil && after.why == "" && after.at.seq == v.next { // the line was inserted
		return
	}
	v.next++
	v.last.hash = ""
}

// accept takes a line that stands where it belongs.
func (v *verifier) accept(s *scanned) {
	v.next = s.at.seq + 1
	v.last = *s
	v.sight(s)
}

// sight takes the content of a line, wherever it stands.
func (v *verifier) sight(s *scanned) {
	v.report.Unsigned++
	if kept, ok := v.heads[s.at.seq]; ok {
		delete(v.heads, s.at.seq)
		if s.why == "" && slices.ContainsFunc(kept, func(hash string) bool { return hash != s.hash }) {
			v.faultAt(s.at, Edited, "a kept checkpoint has another hash of this line: the end of the log was replaced")
		}
	}
	switch s.kind {
	case string(Checkpoint):
		v.signature(s)
	case string(Node):
		v.about(s)
	}
	if v.together != nil && s.why == "" {
		v.together.see(s)
	}
	if v.key != nil && v.report.Unsigned == 2*CheckpointLines {
		v.faultAt(s.at, Unsigned, "the %d lines up to this one have no checkpoint", v.report.Unsigned)
	}
}

// signature checks a checkpoint.
func (v *verifier) signature(s *scanned) {
	v.report.Checkpoints++
	v.report.Unsigned = 0
	_ = jsonx.Unmarshal(s.time, &v.report.Signed)
	if s.why != "" {
		return
	}
	var c Signed
	err := jsonx.Unmarshal(s.sign, &c)
	if err == nil && v.key != nil {
		node, _ := jsonx.Unquote(s.node)
		err = v.signer(&c, node)
	}
	if err == nil && (c.Hash != s.prev || c.Seq != s.at.seq-1) {
		err = errors.New("it signs another line than the one before it")
	}
	if err != nil {
		v.faultAt(s.at, Wrong, "%v", err)
	}
}

// signer returns why the signature of a checkpoint is wrong; nil: it is right.
func (v *verifier) signer(c *Signed, node string) error {
	for _, key := range v.earlier {
		if c.Key != KeyID(key) || key.Equal(v.key) {
			continue
		}
		if v.own {
			return fmt.Errorf("it is signed with the earlier key %s after %s has signed", c.Key, KeyID(v.key))
		}
		return c.check(node, key)
	}
	err := c.check(node, v.key)
	v.own = v.own || err == nil
	return err
}

// about reads a line about the log.
func (v *verifier) about(s *scanned) {
	if s.why != "" {
		return
	}
	var d struct {
		Log      string `json:"log"`
		Shared   bool   `json:"shared"`
		Open     bool   `json:"open"`
		Fragment int    `json:"fragment"`
		Lines    int64  `json:"lines"`
		Cut      *Head  `json:"cut"`
		Gone     *Head  `json:"gone"`
		NoHead   bool   `json:"headMissing"`
	}
	if s.detail != nil && jsonx.Unmarshal(s.detail, &d) != nil {
		return
	}
	if v.report.Log == "" {
		v.report.Log = text.Clip(d.Log, maxChosen)
	}
	switch {
	case s.stop:
		v.running = false
	case s.start && !d.Open:
		if v.running {
			v.noteAt(s.at, Killed, "the process before this start has not closed the log: it was killed, or its machine has failed; calls that it had begun may have no end")
		}
		v.running = !d.Shared
	}
	if d.Fragment > 0 {
		v.noteAt(s.at, Recovered, "a fragment of %d bytes was removed here when the log was opened", d.Fragment)
	}
	if d.Lines > 0 {
		v.noteAt(s.at, Incomplete, "%d lines were dropped before this one, because they could not be written", d.Lines)
	}
	if d.NoHead {
		v.noteAt(s.at, Incomplete, "the file with the last checkpoint was missing when the log was opened, so a cut before this line cannot be found")
	}
	if d.Gone != nil && s.at.seq == v.report.First {
		v.faultAt(s.at, Missing, "the file with the lines up to %d was removed, renamed or emptied while the log was open; verify it too if it was renamed", d.Gone.Seq)
	}
	if d.Cut != nil {
		v.faultAt(s.at, Cut, "when the log was opened its end was gone: it had line %d before", d.Cut.Seq)
	}
}

// finish reports what is missing.
func (v *verifier) finish() {
	v.flush()
	if v.started {
		v.report.Last, v.report.Hash = v.next-1, v.last.hash
	}
	for i, seqs := 0, slices.Sorted(maps.Keys(v.gaps)); i < len(seqs); {
		first, at := seqs[i], v.gaps[seqs[i]]
		last := first
		for i++; i < len(seqs) && seqs[i] == last+1 && v.gaps[seqs[i]].line == at.line; i++ {
			last++
		}
		if last == first {
			v.faultAt(at, Missing, "line %d is gone", first)
		} else {
			v.faultAt(at, Missing, "lines %d to %d are gone", first, last)
		}
	}
	at := v.current
	at.line = max(1, at.line)
	switch {
	case !v.started && len(v.report.Faults) == 0:
		v.faultAt(at, Cut, "the log has no lines")
	case v.key != nil && v.report.Checkpoints == 0:
		v.faultAt(at, Unsigned, "the log has no checkpoint, so the key proves nothing about it")
	case len(v.earlier) > 0 && v.key != nil && !v.own:
		v.faultAt(at, Unsigned, "no checkpoint is signed with the key %s, only with earlier ones", KeyID(v.key))
	}
	for _, seq := range slices.Sorted(maps.Keys(v.heads)) {
		if seq >= v.next { // others are in files that are not given, or missing anyway
			at.seq = v.next
			v.faultAt(at, Cut, "the end is gone: the log had line %d", seq)
		}
	}
	slices.SortStableFunc(v.report.Faults, func(a, b Fault) int {
		if a.File != b.File {
			return 0
		}
		return a.Line - b.Line
	})
}
