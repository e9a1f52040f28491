package resultcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/resultcache"
)

// Results of reads that a write may have made wrong are not returned, nor any after its time, nor the
// oldest when there are too many.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c resultcache.Cache[string, int]
		check := func(key string, want bool) {
			t.Helper()
			if _, ok := c.Read(key).Hit(); ok != want {
				t.Errorf("%s is there: %t, want %t", key, ok, want)
			}
		}
		c.Read("a").Keep(1, 10, time.Minute)
		check("a", true)
		check("b", false)
		time.Sleep(time.Minute)
		check("a", false)

		before := c.Read("before")
		done := c.Write()
		during := c.Read("during")
		before.Keep(1, 10, time.Minute)
		during.Keep(1, 10, time.Minute)
		check("before", false)
		check("during", false)
		done()
		during.Keep(1, 10, time.Minute)
		check("during", false)
		c.Read("after").Keep(1, 10, time.Minute)
		check("after", true)

		c.Read("large").Keep(1, 1<<20, time.Minute)
		check("large", false)
		for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			c.Read(key).Keep(1, 500<<10, time.Minute)
		}
		check("1", false)
		check("9", true)
	})
}
