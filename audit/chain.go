package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// CheckpointLines is the maximum number of lines between two checkpoints.
const CheckpointLines = 10_000

// file is the part of an os.File that a chain writes with.
type file interface {
	WriteAt(b []byte, offset int64) (int, error)
	Truncate(size int64) error
	Close() error
}

// chain is the end of a log, to which lines are added. It is used by one goroutine at a time.
type chain struct {
	path  string
	log   *Log
	file  file
	disk  disk
	sync  func() error                // of file
	start func(lone bool) bool        // asks for a sync of file, for which disk.wait waits; false: the kernel refuses
	tail  func() (int64, error)       // the end of file, in less time than stat
	stat  func() (os.FileInfo, error) // of file
	end
	before   string    // name of the rotated file before an empty file
	unsigned int       // lines since the last checkpoint
	news     bool      // some of them are not of kind CheckpointOther
	fresh    *noted    // the last checkpoint in buf with news; nil: none
	torn     bool      // the file may have bytes after size
	looked   time.Time // when the file was last seen at path

	buf, body []byte
	last      []byte // the last checkpoint in buf
}

// lookTime is the time between looks whether the file is still there.
const lookTime = time.Second

// gone reports whether the open file was cut, or removed, renamed or replaced; for the latter it looks
// at most once in lookTime, unless now.
func (c *chain) gone(now bool) bool {
	if size, err := c.tail(); err == nil && size < c.size {
		return true
	}
	if !now && time.Since(c.looked) < lookTime {
		return false
	}
	own, err := c.stat()
	if err != nil {
		return false
	}
	c.looked = time.Now()
	there, err := os.Stat(c.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(there, own)
}

// recover opens the file, and finds the end of the log in it or in the rotated files. It returns
// what a line should say about it. If the last line that this process knows is gone, an empty file
// goes on from that line. After an error no file is open.
func (c *chain) recover() (detail map[string]any, err error) {
	known, id := c.Head, c.id
	c.file = nil
	f, err := newFile(c.path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			c.file, c.Head = nil, known
		}
	}()
	c.use(f)
	if c.end, err = endOf(f); err != nil {
		return nil, err
	}
	detail = map[string]any{}
	if c.fragment > 0 {
		detail["fragment"] = c.fragment
		c.torn = true
		if err := c.mend(); err != nil {
			return nil, err
		}
	}
	if c.Seq == 0 { // the file has no lines: the log goes on from the rotated ones, if there are any
		if err := c.after(); err != nil {
			return nil, err
		}
	}
	if c.size == 0 && c.id == "" {
		c.id = id
	}
	if known.Seq > c.Seq {
		if c.size > 0 {
			detail["cut"] = known
		} else {
			detail["gone"] = known
			c.Head = known
		}
	}
	head, err := readHead(c.path)
	if err != nil {
		return nil, err
	}
	if head == nil && c.Seq > 0 && known.Seq == 0 && c.log.options.Key != nil {
		detail["headMissing"] = true
	}
	if head != nil && head.Seq > c.Seq {
		detail["cut"] = Head{head.Seq, head.Hash}
	}
	return detail, nil
}

// use makes f the file of the chain.
func (c *chain) use(f *os.File) {
	c.file, c.stat, c.looked = f, f.Stat, time.Now()
	c.tail = func() (int64, error) { return f.Seek(0, io.SeekEnd) } // lines are written by WriteAt
	c.sync, c.start = func() error { return c.disk.sync(f) }, func(lone bool) bool { return c.disk.start(f, lone) }
}

// after finds the end of the log in the last rotated file.
func (c *chain) after() error {
	c.Head = Head{0, genesis}
	files, err := Files(c.path)
	if err != nil {
		return err
	}
	if len(files) < 2 {
		return nil
	}
	before := files[len(files)-2]
	f, err := openFile(before)
	if err != nil {
		return err
	}
	defer f.Close()
	old, err := endOf(f)
	if err != nil {
		return err
	}
	c.Head, c.id = old.Head, old.id
	c.before = filepath.Base(before)
	return nil
}

// mend removes the bytes after the last whole line.
func (c *chain) mend() error {
	if !c.torn {
		return nil
	}
	if err := c.file.Truncate(c.size); err != nil {
		return err
	}
	c.torn = false
	return nil
}

// mark is a state of a chain that it can return to.
type mark struct {
	end
	unsigned int
	news     bool
}

func (c *chain) mark() mark { return mark{c.end, c.unsigned, c.news} }

// begin begins a group of lines.
func (c *chain) begin() { c.buf, c.last, c.fresh = c.buf[:0], nil, nil }

// add adds a line that was prepared to the group, and checkpoints between lines.
func (c *chain) add(prepared *line) error {
	if c.log.options.Key != nil && c.unsigned >= CheckpointLines {
		if err := c.checkpoint(); err != nil {
			return err
		}
	}
	c.link(prepared)
	c.unsigned++
	c.news = c.news || !prepared.other
	return nil
}

// link numbers a line, joins it to the chain, and adds it to the group.
func (c *chain) link(prepared *line) {
	start := len(c.buf)
	c.buf, c.body, c.Head = prepared.join(c.buf, c.body, c.Head)
	if c.size == 0 && start == 0 {
		c.first, c.opened = c.Seq, time.Now()
	}
}

// hashOf returns the hash of a line: of the hash of the line before, and of the line without its
// own.
func hashOf(prev string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(body)
	return hashPrefix + hex.EncodeToString(h.Sum(nil))
}

// node adds a line about the log itself.
func (c *chain) node(event string, detail map[string]any) error {
	raw, err := jsonx.Marshal(detail)
	if err != nil {
		return err
	}
	e := Entry{Kind: Node, Event: event}
	if len(detail) > 0 {
		e.Detail = json.RawMessage(raw)
	}
	line, err := c.log.prepare(&e)
	if err != nil {
		return err
	}
	return c.add(&line)
}

// continued returns the detail of the first line of a file that is not the first.
func (c *chain) continued() map[string]any {
	detail := map[string]any{"after": c.before}
	if c.id != "" {
		detail["log"] = c.id
	}
	return detail
}

// checkpoint adds a checkpoint.
func (c *chain) checkpoint() error {
	key := c.log.options.Key
	if key == nil {
		return nil
	}
	e := Entry{Kind: Checkpoint, Checkpoint: sign(key, c.log.options.Node, c.Head)}
	line, err := c.log.prepare(&e)
	if err != nil {
		return err
	}
	if c.news { // else nodes without calls would note each other's notes without end
		s := e.Checkpoint
		c.fresh, c.news = &noted{Hash: s.Hash, Key: s.Key, Log: c.id, Node: e.Node, Seq: s.Seq, Signature: s.Signature, Time: e.Time}, false
	}
	start := len(c.buf)
	c.link(&line)
	c.last = c.buf[start:]
	c.unsigned = 0
	return nil
}

// write writes the group after the last whole line. After an error the chain is as it was at m.
func (c *chain) write(m mark, wait bool) error {
	err := c.put()
	if err == nil && wait {
		err = c.sync()
	}
	return c.wrote(m, err)
}

// put writes the group into the file. wrote must follow.
func (c *chain) put() error {
	if err := c.mend(); err != nil {
		return err
	}
	c.torn = true
	_, err := c.file.WriteAt(c.buf, c.size)
	return err
}

// wrote ends what put has begun, and returns the error that it gets.
func (c *chain) wrote(m mark, err error) error {
	if err != nil {
		c.end, c.unsigned, c.news = m.end, m.unsigned, m.news
		_ = c.mend() // or before the next group
		return err
	}
	c.torn = false
	c.size += int64(len(c.buf))
	if c.last != nil { // without a copy Verify only finds fewer cuts
		_ = ownfile.Replace(headPath(c.path), c.last)
	}
	if c.fresh != nil {
		c.log.latest.Store(c.fresh)
	}
	return nil
}

// full reports whether the file must be rotated before n more bytes.
func (c *chain) full(n int) bool {
	if c.size == 0 {
		return false
	}
	now, opened := time.Now().UTC(), c.opened.UTC()
	return c.size+int64(n) > c.log.options.MaxBytes || now.YearDay() != opened.YearDay() || now.Year() != opened.Year()
}

// rotate renames the file and goes on in a new one, which is empty. After an error the log goes on
// in the old one, or is closed.
func (c *chain) rotate() error {
	if err := c.mend(); err != nil {
		return err
	}
	if err := c.sync(); err != nil {
		return err
	}
	name := rotatedName(c.path, c.opened, c.first)
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already", name)
	}
	err := c.file.Close() // Windows does not rename open files
	c.file = nil
	if err != nil {
		return err
	}
	renamed := os.Rename(c.path, name)
	f, err := newFile(c.path)
	if err != nil {
		return err
	}
	if c.use(f); renamed != nil {
		return renamed
	}
	c.end, c.before = end{Head: c.Head, id: c.id}, filepath.Base(name)
	return nil
}

// publicKey returns the public half of a key.
func publicKey(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey)
}
