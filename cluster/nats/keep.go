package nats

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// look is the time between two looks at whether the server has stopped.
	look = time.Second
	// pause is the time between two attempts to begin again, of a disk that is full again and again.
	pause = 10 * time.Second
	// space is what the disk needs for that, in bytes.
	space = 1 << 20
)

// keep begins the server again when it has stopped, until ctx ends.
func (s *Server) keep(ctx context.Context) {
	defer close(s.closed)
	tick := time.NewTicker(look)
	defer tick.Stop()
	said, tried := "", time.Now()
	say := func(text string) {
		if text != said {
			s.log.Error(text)
		}
		said = text
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := stopped(s.current.Load())
		if why == "" {
			said = ""
			continue
		}
		if said == "" {
			say("nats: stopped, until its folder can be written: " + why)
		}
		if time.Since(tried) < pause {
			continue
		}
		tried = time.Now()
		err := writable(s.options.StoreDir)
		if err == nil {
			shutdown(s.current.Load())
			err = s.begin(ctx)
		}
		switch {
		case err == nil:
			s.log.Warn("nats: begins again")
		case ctx.Err() == nil:
			say("nats: does not begin again yet: " + err.Error())
		}
	}
}

// stopped says why JetStream of a server does not go on by itself, which is so after an error of a file. It is empty if it works,
// and while it waits for other servers.
func stopped(n *server.Server) string {
	if !n.JetStreamEnabled() {
		return "JetStream is disabled"
	}
	for _, e := range n.Healthz(&server.HealthzOptions{Details: true}).Errors {
		// The server has no other word for these. TestFullDisk sees that they are still the same.
		if strings.Contains(e.Error, "write error") || strings.Contains(e.Error, "is not running") {
			return e.Error
		}
	}
	return ""
}

// writable writes a file into a folder and removes it.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, "space-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, space))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("no space: %w", err)
	}
	return nil
}

// shutdown ends a server and waits for that.
func shutdown(n *server.Server) {
	n.Shutdown()
	n.WaitForShutdown()
}
