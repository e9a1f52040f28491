package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLineBytes bounds one line of a trace. It leaves room for the largest
// stdio frame (16 MiB) with each byte escaped.
const MaxLineBytes = 128 << 20

// ErrLineTooLong is wrapped by the error of a line longer than [MaxLineBytes].
var ErrLineTooLong = errors.New("trace: line too long")

// LineError reports one line of a trace that is not a frame.
type LineError struct {
	Line int   // from 1
	Err  error // why
}

func (e *LineError) Error() string { return fmt.Sprintf("trace line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Read returns the frames of a trace in order. Blank lines are skipped.
//
// A line that is not a frame gives a [*LineError]; reading goes on after it if the loop does. An
// error of r is wrapped and is the last. The sequence reads r on demand and can be used once.
func Read(r io.Reader) iter.Seq2[Frame, error] { return read(r, MaxLineBytes) }

func read(r io.Reader, maxBytes int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		var buf []byte
		for n := 1; ; n++ {
			line, tooLong, err := readLine(br, buf[:0], maxBytes)
			buf = line
			if err != nil && err != io.EOF {
				yield(Frame{}, fmt.Errorf("trace line %d: %w", n, err))
				return
			}
			var f Frame
			switch line = bytes.TrimSpace(line); {
			case tooLong:
				if !yield(Frame{}, &LineError{n, fmt.Errorf("%w, over %d bytes", ErrLineTooLong, maxBytes)}) {
					return
				}
			case len(line) == 0:
			default:
				if ferr := f.UnmarshalJSON(line); ferr != nil {
					if !yield(Frame{}, &LineError{n, ferr}) {
						return
					}
				} else if !yield(f, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// readLine appends one line to buf. A line over maxBytes is read to its end
// and its content is not kept.
func readLine(br *bufio.Reader, buf []byte, maxBytes int) (line []byte, tooLong bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if !tooLong {
			if len(buf)+len(bytes.TrimRight(part, "\r\n")) > maxBytes {
				tooLong, buf = true, buf[:0]
			} else {
				buf = append(buf, part...)
			}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return buf, tooLong, err
	}
}
