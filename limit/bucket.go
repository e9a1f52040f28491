package limit

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// kind is the kind of requests that a bucket counts.
type kind uint8

const (
	caller  kind = iota // requests from a caller
	further             // follow-up requests from a caller
	ofTool              // calls of tools, of a caller
	address             // HTTP requests of an address
)

type key struct {
	kind kind
	who  string
	tool string // a pattern
}

// bucket holds the tokens of one key. All of it is guarded by mu of the buckets.
type bucket struct {
	key
	rate    Rate
	nodes   int           // that share the rate
	tokens  *rate.Limiter // nil: there is no bound
	running int
}

// wait returns the time until there is a token.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.tokens == nil {
		return 0
	}
	if t := b.tokens.TokensAt(now); t < 1 {
		return time.Duration((1 - t) / float64(b.tokens.Limit()) * float64(time.Second))
	}
	return 0
}

// take takes a token.
func (b *bucket) take(now time.Time) {
	if b.tokens != nil {
		b.tokens.AllowN(now, 1)
	}
}

// maxBuckets bounds the buckets; the least recently used are dropped first.
const maxBuckets = 50_000

// buckets holds the buckets of a Limiter. The zero value is ready for use.
type buckets struct {
	mu    sync.Mutex
	byKey map[key]*list.Element // guarded by mu
	all   list.List             // of *bucket, most recently used first; guarded by mu
}

// of returns the bucket of k, of a rate that nodes share. If there is none, it adds a full one; mu is held.
func (bs *buckets) of(k key, r Rate, nodes int) *bucket {
	if e := bs.byKey[k]; e != nil {
		bs.all.MoveToFront(e)
		b := e.Value.(*bucket)
		if b.nodes != nodes && b.tokens != nil {
			b.tokens.SetLimit(rate.Limit(r.perSecond() / float64(nodes)))
			b.tokens.SetBurst(part(r.burst(), nodes))
		}
		b.nodes = nodes
		return b
	}
	if bs.byKey == nil {
		bs.byKey = map[key]*list.Element{}
	}
	b := &bucket{key: k, rate: r, nodes: nodes}
	if !r.none() {
		b.tokens = rate.NewLimiter(rate.Limit(r.perSecond()/float64(nodes)), part(r.burst(), nodes))
	}
	bs.byKey[k] = bs.all.PushFront(b)
	for e := bs.all.Back(); e != nil && bs.all.Len() > maxBuckets; {
		old := e.Value.(*bucket)
		next := e.Prev()
		if old.running == 0 && old != b {
			delete(bs.byKey, old.key)
			bs.all.Remove(e)
		}
		e = next
	}
	return b
}
