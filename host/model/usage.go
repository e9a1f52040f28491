package model

// Usage counts tokens.
type Usage struct {
	Input  int64 `json:"input"`            // all of the request, cached ones too
	Output int64 `json:"output"`           // thoughts too
	Cached int64 `json:"cached,omitempty"` // of Input: read from a cache
	Stored int64 `json:"stored,omitempty"` // of Input: written to one
}

// Add adds the usage of another answer.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.Cached += v.Cached
	u.Stored += v.Stored
}

// less returns the usage without another that is part of it.
func (u Usage) less(v Usage) Usage {
	return Usage{Input: u.Input - v.Input, Output: u.Output - v.Output, Cached: u.Cached - v.Cached, Stored: u.Stored - v.Stored}
}

// Price is the price of a million tokens, in any currency. The zero value means that it is not
// known.
type Price struct {
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
	Cached float64 `json:"cached,omitempty"` // 0: as Input
	Stored float64 `json:"stored,omitempty"` // 0: as Input
}

// Of returns the cost of a usage.
func (p Price) Of(u Usage) float64 {
	or := func(price float64) float64 {
		if price == 0 {
			return p.Input
		}
		return price
	}
	plain := float64(u.Input - u.Cached - u.Stored)
	return (plain*p.Input + float64(u.Cached)*or(p.Cached) + float64(u.Stored)*or(p.Stored) + float64(u.Output)*p.Output) / 1e6
}
