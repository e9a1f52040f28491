package limit

import (
	"container/list"
	"math"
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
	rate     Rate
	part     float64       // of the rate, that this process allows
	equal    float64       // part, if all processes had the same
	tokens   *rate.Limiter // nil: there is no bound
	running  int
	hashed   uint64    // see hash; zero: not yet
	standing *standing // nil: the parts do not follow the requests, or too many callers are known
}

// fit makes the bucket one for a part of its rate. Where it shrinks, its tokens do; where it grows, it gets those of the part that it gains.
func (b *bucket) fit(now time.Time, part, gain float64) {
	if b.rate.none() || b.part == part && gain == 0 {
		b.part = part
		return
	}
	limit, burst := rate.Limit(b.rate.perSecond()*part), partOf(b.rate.burst(), part)
	have := float64(burst)
	if b.tokens != nil {
		was := float64(b.tokens.Burst())
		have = b.tokens.TokensAt(now)*min(1, have/was) + max(0, have-was)*min(1, gain/max(part-b.part, 1e-9))
	}
	b.part, b.tokens = part, rate.NewLimiter(limit, burst)
	if missing := float64(burst) - have; missing > 0 {
		n := min(burst, int(math.Ceil(missing)))
		more := (float64(n) - missing) / float64(limit) // seconds until what is taken too much is there again
		b.tokens.AllowN(now.Add(-time.Duration(more*float64(time.Second))), n)
	}
}

// partOf returns a part of a bound, at least one.
func partOf(bound int, part float64) int { return max(1, int(math.Ceil(float64(bound)*part-1e-6))) }

// fill returns how full the bucket is, from 0 to 1.
func (b *bucket) fill(now time.Time) float64 {
	if b.tokens == nil {
		return 1
	}
	return b.tokens.TokensAt(now) / float64(b.tokens.Burst())
}

// wait returns the time until there is a token, or until this process may have got an equal part of the limit.
func (b *bucket) wait(now time.Time) time.Duration {
	if b.tokens == nil {
		return 0
	}
	if t := b.tokens.TokensAt(now); t < 1 {
		return time.Duration((1 - t) / max(float64(b.tokens.Limit()), b.rate.perSecond()*b.equal) * float64(time.Second))
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

// of returns the bucket of k, of a rate that a group has together. If there is none, it adds a full one; mu is held.
func (bs *buckets) of(k key, r Rate, g *Group, now time.Time) *bucket {
	if e := bs.byKey[k]; e != nil {
		bs.all.MoveToFront(e)
		b := e.Value.(*bucket)
		g.fit(b, now)
		return b
	}
	if bs.byKey == nil {
		bs.byKey = map[key]*list.Element{}
	}
	b := &bucket{key: k, rate: r}
	g.fit(b, now)
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
