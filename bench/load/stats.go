package load

import (
	"math"
	"slices"
	"time"
)

// A Sample is the cost of a series of calls.
type Sample struct {
	Calls int
	CPU   time.Duration // of the server, all calls together
	P50   time.Duration // of a call, for the caller
	P99   time.Duration // 99 of 100 calls are not slower
}

// CPUPerCall returns the CPU time of one call.
func (s Sample) CPUPerCall() time.Duration { return s.CPU / time.Duration(max(s.Calls, 1)) }

// Median returns the middle of v, the mean of both if there are two, and NaN if v is empty.
// It does not change v.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// Spread returns half of the distance between the least and the greatest of v, 0 if v is
// empty.
func Spread(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return (slices.Max(v) - slices.Min(v)) / 2
}

// newSample returns the sample of calls that took these times, which it sorts.
func newSample(times []time.Duration, cpu time.Duration) Sample {
	s := Sample{Calls: len(times), CPU: cpu}
	if len(times) > 0 {
		slices.Sort(times)
		s.P50, s.P99 = times[len(times)/2], times[len(times)*99/100]
	}
	return s
}
