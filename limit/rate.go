package limit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Rate is Count requests in the time Per. The zero value means no bound.
type Rate struct {
	Count int
	Per   time.Duration

	// Burst is the number of requests allowed at once after a pause. Zero means Count.
	Burst int
}

// maxRate bounds Count and Burst, so that nothing overflows.
const maxRate = 1_000_000_000

// ParseRate reads a rate such as "100/s", "5/m", "1000/h" or "10/30s". A burst may follow:
// "100/s,burst=20".
func ParseRate(text string) (Rate, error) {
	bad := func(why string) (Rate, error) {
		return Rate{}, fmt.Errorf("rate %.100q: %s; write it like 100/s, 5/m or 10/30s,burst=2", text, why)
	}
	base, more, burst := strings.Cut(text, ",")
	count, per, ok := strings.Cut(base, "/")
	if !ok {
		return bad("the time is missing")
	}
	var r Rate
	var err error
	if r.Count, err = number(count); err != nil {
		return bad(err.Error())
	}
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	if r.Per, err = time.ParseDuration(per); err != nil || r.Per <= 0 {
		return bad("its time must be s, m, h or a duration")
	}
	if burst {
		value, ok := strings.CutPrefix(more, "burst=")
		if !ok {
			return bad("only burst= may follow")
		}
		if r.Burst, err = number(value); err != nil {
			return bad(err.Error())
		}
	}
	return r, nil
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxRate || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("%.20q is not a number from 1 to %d", s, maxRate)
	}
	return n, nil
}

// String writes a rate as [ParseRate] reads it, empty for none.
func (r Rate) String() string {
	if r.none() {
		return ""
	}
	s := strconv.Itoa(r.Count) + "/"
	switch r.Per {
	case time.Second:
		s += "s"
	case time.Minute:
		s += "m"
	case time.Hour:
		s += "h"
	default:
		s += r.Per.String()
	}
	if r.Burst > 0 {
		s += ",burst=" + strconv.Itoa(r.Burst)
	}
	return s
}

func (r Rate) none() bool { return r.Count <= 0 || r.Per <= 0 }

// perSecond returns the requests per second.
func (r Rate) perSecond() float64 { return float64(r.Count) / r.Per.Seconds() }

func (r Rate) burst() int {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Count
}
