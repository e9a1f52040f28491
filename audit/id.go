package audit

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// crockford is the alphabet of ULIDs.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID returns the id of a call: a ULID, which sorts by time.
func newID() string {
	var b [18]byte // two bits of zeros before the 128 make 26 letters
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:16])
	// base32 takes five bits from the left: shift by two bits to the right
	var shifted [17]byte
	for i := range 16 {
		shifted[i] |= b[i] >> 2
		shifted[i+1] = b[i] << 6
	}
	return crockford.EncodeToString(shifted[:])[:26]
}

// newLogID returns the id of a log. Two logs that begin with the same lines differ in it.
func newLogID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
