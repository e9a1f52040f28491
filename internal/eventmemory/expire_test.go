package eventmemory

import (
	"testing"
	"testing/synctest"
	"time"
)

// Events expire on their own, even if the server gets no requests.
func TestEventsExpireOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Store
		held := func() int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.all.Len()
		}
		add := func(position int64) {
			if err := m.Append(t.Context(), "s", position, []byte("event")); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		time.Sleep(2 * time.Minute)
		add(2)
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{3*time.Minute - time.Second, 2}, {2 * time.Second, 1}, {2 * time.Minute, 0}} {
			time.Sleep(step.after)
			synctest.Wait()
			if n := held(); n != step.want {
				t.Errorf("%d events held, want %d", n, step.want)
			}
		}
		add(3) // the timer is set again after a pause
		time.Sleep(MaxAge)
		synctest.Wait()
		if n := held(); n != 0 || m.bytes != 0 || len(m.streams) != 0 {
			t.Errorf("%d events of %d bytes in %d streams held, want none", n, m.bytes, len(m.streams))
		}
	})
}
