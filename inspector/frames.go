package inspector

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
	"github.com/patchbay-dev/patchbay/trace/record"
)

const (
	defaultFrames = 50_000
	defaultBytes  = 32 << 20

	// Bounds of a recording that is opened. It is in memory as long as the page is.
	recordedFrames = 2_000_000
	recordedBytes  = 512 << 20
)

// Frames keeps the last frames of a recorder, for the wire screen of a [Page]. The zero value keeps at most 50,000 frames
// and 32 MiB, whichever is less. Its fields are set before use, and its methods may be called from any goroutine.
//
// # Guarantees
//
//   - Record never waits for somebody who looks, and its work does not grow with the number of frames kept.
//   - Frames are kept as they are and redacted whenever they are read, so a secret that the Redactor learns later does not
//     show either. A private key in several lines of standard error is redacted at once.
//   - When there is no room, the oldest frames go first. One frame of any length is always kept.
//   - Of a [trace.Tee] that Follow takes frames of, about 1,000 in a second are taken for as long as more come: whole calls that have
//     succeeded are left out, with their frames on both hops, and the page counts these frames. Other calls, calls of tools that a client
//     uses rarely, and frames that belong to no call are taken, as are all while somebody looks for something, up to 12,000
//     in a second.
type Frames struct {
	Redactor *trace.Redactor // nil: the default
	Max      int             // frames; zero: 50,000
	MaxBytes int64           // of frames, with what it takes to keep them; zero: 32 MiB

	mu      sync.Mutex
	epoch   string                  // tells these frames from those of an earlier process; guarded by mu
	ring    []*kept                 // guarded by mu; frame n is at n % len
	first   int                     // number of the oldest frame; guarded by mu
	next    int                     // number of the next frame; guarded by mu
	bytes   int64                   // guarded by mu
	start   time.Time               // of the first frame of all; guarded by mu
	conns   map[string]*conn        // guarded by mu
	idle    int                     // of conns, without a row; guarded by mu
	rows    map[uint64]int          // the rows that later frames may belong to, by the hashes of their keys; guarded by mu
	seed    maphash.Seed            // of these hashes; guarded by mu
	texts   map[string]string       // of many rows; guarded by mu
	keys    map[string]*trace.Lines // of standard error, by connection; guarded by mu
	changed chan struct{}           // closed by the next frame; nil: nobody waits; guarded by mu
	last    *row                    // the newest row; guarded by mu
	faults  []string                // of a recording, for people; guarded by mu
	wide    atomic.Int32            // readers that look for something
	left    atomic.Int64            // frames that were left out: see share
}

// kept is a frame that is kept. It and its number do not change.
type kept struct {
	n      int
	packed packedFrame
	frame  *trace.Frame // while it is placed

	row  int   // number of the first frame of its row
	next int   // the next frame of the same row; zero: none
	also []int // further rows that it changed
	r    *row  // the row that it begins; nil: none
}

// init prepares the zero value. The caller holds mu.
func (f *Frames) init() {
	if f.ring != nil {
		return
	}
	f.epoch, f.ring, f.first, f.next = strings.ToLower(rand.Text()[:8]), make([]*kept, 256), 1, 1
	f.conns, f.rows, f.keys = map[string]*conn{}, map[uint64]int{}, map[string]*trace.Lines{}
	f.seed, f.texts = maphash.MakeSeed(), map[string]string{}
	if f.Redactor == nil {
		f.Redactor = trace.NewRedactor(nil)
	}
	if f.Max <= 0 {
		f.Max = defaultFrames
	}
	if f.MaxBytes <= 0 {
		f.MaxBytes = defaultBytes
	}
}

// Follow takes frames of a Tee, until stop is called.
func (f *Frames) Follow(t *trace.Tee) (stop func()) {
	s := newShare(&f.wide, &f.left)
	remove := t.AddSome(s.choose, f.Record)
	return func() {
		remove()
		s.end()
	}
}

// Record adds a frame and keeps the bytes it refers to: it is a taker of a [trace.Tee]. A frame without a time gets the
// time of the call.
func (f *Frames) Record(frame trace.Frame) {
	if frame.Time.IsZero() {
		frame.Time = time.Now()
	}
	f.add(frame)
}

func (f *Frames) add(frame trace.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	if frame.Kind == trace.KindStderr {
		frame.Raw = f.withoutKey(frame.Conn, frame.Raw)
	}
	if f.start.IsZero() {
		f.start = frame.Time
	}
	e := &kept{n: f.next, packed: packFrame(&frame), frame: &frame}
	f.bytes += e.size()
	f.grow()
	f.next++
	f.ring[e.n%len(f.ring)] = e
	f.place(e)
	e.frame = nil
	for f.first < e.n && (f.next-f.first > f.Max || f.bytes > f.MaxBytes) {
		f.drop()
	}
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// grow makes room for a frame in the ring. The caller holds mu.
func (f *Frames) grow() {
	if f.next-f.first < len(f.ring) {
		return
	}
	ring := make([]*kept, 2*len(f.ring))
	for n := f.first; n < f.next; n++ {
		ring[n%len(ring)] = f.ring[n%len(f.ring)]
	}
	f.ring = ring
}

// drop drops the oldest frame. The caller holds mu.
func (f *Frames) drop() {
	e := f.ring[f.first%len(f.ring)]
	f.ring[f.first%len(f.ring)] = nil
	f.bytes -= e.size()
	f.first++
	if e.r != nil {
		f.forget(e.r)
	}
}

// at returns a frame; nil: it is not kept. The caller holds mu.
func (f *Frames) at(n int) *kept {
	if n < f.first || n >= f.next {
		return nil
	}
	return f.ring[n%len(f.ring)]
}

// overhead is what a frame takes besides its bytes: itself, its row, and its places in maps.
const overhead = int64(unsafe.Sizeof(kept{})+unsafe.Sizeof(row{})) + 200

// size returns the bytes that a frame takes.
func (e *kept) size() int64 { return overhead + int64(cap(e.packed)) }

// maxKeyConns bounds the connections whose standard error is watched for private keys.
const maxKeyConns = 1000

// withoutKey returns a line of standard error, or the mark of a secret if it is part of a private key. The caller holds mu.
func (f *Frames) withoutKey(conn string, line []byte) []byte {
	k := f.keys[conn]
	if k == nil {
		if len(f.keys) >= maxKeyConns {
			clear(f.keys)
		}
		k = new(trace.Lines)
		f.keys[conn] = k
	}
	if k.Secret(string(line)) {
		return []byte(trace.Redacted)
	}
	return line
}

// newest returns the number of the newest frame; zero: there is none.
func (f *Frames) newest() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	return f.next - 1
}

// wait returns a channel that is closed when there is a frame with a number of at least next.
func (f *Frames) wait(next int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	if f.next > next {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

// OpenRecording reads a recording for a page that shows it: a file of --trace, or a folder of --record. Lines that are
// not frames are left out; State names the first ones. Of a recording with more than 2,000,000 frames or 512 MiB the last
// part is kept.
//
// The error says that the file cannot be read or has no frames.
func OpenRecording(ctx context.Context, path string) (*Frames, error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = record.Files(path); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("the folder %s has no recordings", path)
		}
	}
	f := &Frames{Max: recordedFrames, MaxBytes: recordedBytes}
	if err := f.openFiles(ctx, path, files...); err != nil {
		return nil, err
	}
	return f, nil
}

// openFiles adds the frames of the files of a recording. The error says that they cannot be read, or have no frames.
func (f *Frames) openFiles(ctx context.Context, name string, files ...string) error {
	f.init()
	for _, file := range files {
		if err := f.open(ctx, file); err != nil {
			return err
		}
	}
	if f.next == f.first {
		if len(f.faults) > 0 {
			return fmt.Errorf("%s is not a recording: it has no frames; %s", name, f.faults[0])
		}
		return fmt.Errorf("the recording %s has no frames", name)
	}
	if f.first > 1 {
		f.fault("the recording is longer than the page can show: its first %d frames are left out", f.first-1)
	}
	return nil
}

func (f *Frames) open(ctx context.Context, file string) error {
	in, err := ownfile.Open(ctx, file)
	if err != nil {
		return err
	}
	defer in.Close()
	return f.read(ctx, file, in)
}

// read adds the frames of a trace.
func (f *Frames) read(ctx context.Context, name string, in io.Reader) error {
	for frame, err := range trace.Read(in) {
		var line *trace.LineError
		switch {
		case errors.As(err, &line):
			f.fault("%s: %v", name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			f.add(frame)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// maxFaults bounds the faults of a recording that are named.
const maxFaults = 20

func (f *Frames) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) < maxFaults {
		f.faults = append(f.faults, shown(fmt.Sprintf(format, args...)))
	}
}
