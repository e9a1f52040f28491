package cluster

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// flushed is a client that sees what is flushed.
type flushed struct {
	*httptest.ResponseRecorder
	seen chan string
}

func (f *flushed) Flush() { f.seen <- f.Body.String() }

// TestStreamInPieces sees that what has come of a stream is sent on, wherever the connection cuts it.
func TestStreamInPieces(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	for cut := 1; cut < len(whole); cut++ {
		r, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, whole[:cut])
			_, _ = io.WriteString(w, whole[cut:]) // and then nothing for a while
		}()
		l := &line{in: bufio.NewReader(r)}
		client := &flushed{httptest.NewRecorder(), make(chan string, 10)}
		ended := make(chan error, 1)
		go func() {
			res, err := http.ReadResponse(l.in, nil)
			if err == nil {
				err = l.answer(client, res)
			}
			ended <- err
		}()
		for got := ""; got != "hello"; {
			select {
			case got = <-client.seen:
			case err := <-ended:
				t.Fatalf("cut at %d: %v", cut, err)
			case <-time.After(time.Minute):
				t.Fatalf("cut at %d: %q came", cut, got)
			}
		}
		_, _ = io.WriteString(w, "0\r\n\r\n")
		if err := <-ended; err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}
