package load

import (
	"math"
	"testing"
	"time"
)

func TestMedianAndSpread(t *testing.T) {
	tests := []struct {
		v              []float64
		median, spread float64
	}{
		{[]float64{3}, 3, 0},
		{[]float64{3, 1}, 2, 1},
		{[]float64{9, 1, 2}, 2, 4},
		{[]float64{4, 1, 3, 2}, 2.5, 1.5},
		{[]float64{1, 1, 1}, 1, 0},
	}
	for _, tt := range tests {
		first := tt.v[0]
		if m, s := Median(tt.v), Spread(tt.v); m != tt.median || s != tt.spread {
			t.Errorf("%v: median %v, spread %v, want %v, %v", tt.v, m, s, tt.median, tt.spread)
		}
		if tt.v[0] != first {
			t.Errorf("%v was reordered", tt.v)
		}
	}
	if m, s := Median(nil), Spread(nil); !math.IsNaN(m) || s != 0 {
		t.Errorf("of nothing: median %v, spread %v", m, s)
	}
}

func TestSample(t *testing.T) {
	if got := (Sample{Calls: 4, CPU: 10}).CPUPerCall(); got != 2 {
		t.Errorf("CPUPerCall = %v", got)
	}
	if got := (Sample{CPU: 10}).CPUPerCall(); got != 10 {
		t.Errorf("CPUPerCall without calls = %v", got)
	}
	if got := newSample([]time.Duration{5, 1, 3}, 7); got != (Sample{Calls: 3, CPU: 7, P50: 3, P99: 5}) {
		t.Errorf("newSample = %v", got)
	}
	if got := newSample(nil, 7); got != (Sample{CPU: 7}) {
		t.Errorf("newSample of nothing = %v", got)
	}
}
