// Package retryafter reads the time after which a peer wants to be asked again.
package retryafter

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// longest bounds the times that are returned.
const longest = 24 * time.Hour

// Header reads the Retry-After header of an HTTP response (RFC 9110, 10.2.3): seconds, or a date.
// False: there is none that can be read.
func Header(h http.Header) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longest), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(at)), longest), true
	}
	return 0, false
}

// Data reads the member retryAfter of the data of a JSON-RPC error, in seconds, as package limit
// writes it. False: there is none that can be read.
func Data(data json.RawMessage) (time.Duration, bool) {
	raw, ok := jsonx.Lookup(data, "retryAfter")
	if !ok {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(seconds >= 0) {
		return 0, false
	}
	return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second)), true
}
