package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/patchbay-dev/patchbay/cluster"
)

// gone is the header of a message in place of an entry that was deleted. NATS itself puts a message with a header of its own in
// place of one that has expired.
const (
	gone    = "Patchbay-Deleted"
	expired = "Nats-Marker-Reason"
)

// Get implements [cluster.State].
func (c *state) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.Check("key", key); err != nil {
		return cluster.Entry{}, err
	}
	m, err := c.last(ctx, key)
	switch {
	case err != nil:
		return cluster.Entry{}, fmt.Errorf("%s: %w", key, err)
	case m == nil, deleted(m.Header):
		return cluster.Entry{}, fmt.Errorf("%s: %w", key, cluster.ErrNotFound)
	}
	return cluster.Entry{Key: key, Value: m.Data, Version: m.Sequence}, nil
}

func deleted(h nats.Header) bool { return h.Get(gone) != "" || h.Get(expired) != "" }

// last returns the message of a key, nil if there is none.
func (c *state) last(ctx context.Context, key string) (*jetstream.RawStreamMsg, error) {
	m, err := asked(ctx, c, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		m, err := c.stream.GetLastMsgForSubject(ctx, c.subjects+key)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = c.missing(ctx, key)
		}
		return m, err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, err
}

// errUnread says that a server has a message, and did not return it.
var errUnread = errors.New("nats: the message cannot be read")

// missing returns ErrMsgNotFound if there is no message of a key. A server says "no message found" also when it fails to read one, as from
// its file, so its index of all messages is asked too.
func (c *state) missing(ctx context.Context, key string) error {
	info, err := c.stream.Info(ctx, jetstream.WithSubjectFilter(c.subjects+key))
	switch {
	case err != nil:
		return err
	case info.State.Subjects[c.subjects+key] > 0:
		return errUnread
	}
	return jetstream.ErrMsgNotFound
}

// Put implements [cluster.State].
func (c *state) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := cluster.CheckPut(key, value, ttl); err != nil {
		return 0, err
	}
	m := nats.NewMsg(c.subjects + key)
	m.Data = value
	next, err := c.change(ctx, m, key, version, cluster.Seconds(ttl))
	if errors.Is(err, cluster.ErrConflict) && version == 0 {
		// The trace of an entry that is gone has a version too.
		var trace *jetstream.RawStreamMsg
		if trace, err = c.last(ctx, key); err == nil && trace != nil && deleted(trace.Header) {
			next, err = c.change(ctx, m, key, trace.Sequence, cluster.Seconds(ttl))
		} else if err == nil {
			err = cluster.ErrConflict
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return next, nil
}

// Delete implements [cluster.State].
func (c *state) Delete(ctx context.Context, key string, version uint64) error {
	if err := cluster.Check("key", key); err != nil {
		return err
	}
	err := error(cluster.ErrConflict)
	if version != 0 {
		m := nats.NewMsg(c.subjects + key)
		m.Header.Set(gone, "yes")
		_, err = c.change(ctx, m, key, version, markers)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// change writes a message in place of that with the given sequence. If its acknowledgement is lost, it is sent again with the
// same id, which JetStream counts once.
func (c *state) change(ctx context.Context, m *nats.Msg, key string, version uint64, ttl time.Duration) (uint64, error) {
	opts := []jetstream.PublishOpt{
		jetstream.WithExpectLastSequencePerSubject(version), jetstream.WithMsgID(nuid.Next()), jetstream.WithRetryAttempts(0),
	}
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(ttl))
	}
	return asked(ctx, c, func(ctx context.Context) (uint64, error) {
		m := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: maps.Clone(m.Header)} // PublishMsg changes the header
		ack, err := c.js.PublishMsg(ctx, m, opts...)
		var refused *jetstream.APIError
		switch {
		case err == nil:
			return ack.Sequence, nil
		case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
			return 0, cluster.ErrConflict
		case errors.As(err, &refused) && refused.ErrorCode == inFlight && !c.at(ctx, key, version):
			return 0, cluster.ErrConflict
		}
		return 0, err
	})
}

// at says whether the last message of a key still has the given sequence, 0 for none.
func (c *state) at(ctx context.Context, key string, version uint64) bool {
	m, err := c.last(ctx, key)
	switch {
	case err != nil:
		return true // the next attempt will tell
	case m == nil:
		return version == 0
	}
	return m.Sequence == version
}

// Watch implements [cluster.State].
func (c *state) Watch(ctx context.Context, prefix string) iter.Seq2[cluster.Change, error] {
	return func(yield func(cluster.Change, error) bool) {
		if err := cluster.Check("prefix", prefix); err != nil {
			yield(cluster.Change{}, err)
			return
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		changes := make(chan cluster.Change, 16)
		var failed error // set before changes is closed
		go func() {      // ends a moment after ctx, or when the client of NATS does: while it makes a consumer again, it does not listen
			defer close(changes)
			failed = c.watch(ctx, prefix, changes)
		}()
		for {
			select {
			case change, more := <-changes:
				switch {
				case !more && ctx.Err() == nil:
					yield(cluster.Change{}, fmt.Errorf("watch of %s: %w", prefix, failed))
					return
				case !more, !yield(change, nil):
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// unusedTime is how long NATS keeps the consumer of a watch that has ended, or that was made for an attempt which had no answer. A stream has
// at most 1,000 of them.
const unusedTime = 5 * time.Second

// stopTime is how long a watch has to end by itself before its consumer is stopped. One that is stopped while the client of NATS makes it again may never
// learn of it.
const stopTime = time.Second

// watch sends the changes until ctx ends, or something fails.
func (c *state) watch(ctx context.Context, prefix string, changes chan<- cluster.Change) error {
	send := func(change cluster.Change) bool {
		select {
		case changes <- change:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var consumer jetstream.Consumer
	var info *jetstream.ConsumerInfo
	err := c.attempts(ctx, func(ctx context.Context) (err error) {
		if consumer == nil {
			consumer, err = c.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
				FilterSubjects: []string{c.subjects + prefix + ".>"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, InactiveThreshold: unusedTime,
			})
		}
		if err == nil {
			info, err = consumer.Info(ctx)
		}
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			consumer = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	over := make(chan struct{})
	defer close(over)
	defer context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-time.After(stopTime):
			messages.Stop()
		}
	})()
	missing := int(info.NumPending) // of the entries that were there
	for {
		if missing == 0 {
			if !send(cluster.Change{}) {
				return nil
			}
			missing = -1
		}
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		about, err := m.Metadata()
		if err != nil {
			return err
		}
		first := missing >= 0
		if first {
			missing = min(missing-1, int(about.NumPending))
		}
		change := cluster.Change{
			Entry:   cluster.Entry{Key: strings.TrimPrefix(m.Subject(), c.subjects), Value: m.Data(), Version: about.Sequence.Stream},
			Deleted: deleted(m.Headers()),
		}
		if first && change.Deleted {
			continue // the trace of one that was gone before
		}
		if !send(change) {
			return nil
		}
	}
}
