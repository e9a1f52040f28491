package complete

import "testing"

func TestParams(t *testing.T) {
	tests := []struct {
		of     string
		others map[string]string
		want   string
	}{
		{"greet", nil, `{"argument":{"name":"a","value":"p"},"ref":{"name":"greet","type":"ref/prompt"}}`},
		{"test://{id}", map[string]string{"id": "4"},
			`{"argument":{"name":"a","value":"p"},"context":{"arguments":{"id":"4"}},"ref":{"type":"ref/resource","uri":"test://{id}"}}`},
		{"test://x", nil, `{"argument":{"name":"a","value":"p"},"ref":{"type":"ref/resource","uri":"test://x"}}`},
	}
	for _, tt := range tests {
		if got := string(Params(tt.of, "a", "p", tt.others)); got != tt.want {
			t.Errorf("Params(%q, a, p, %v) = %s, want %s", tt.of, tt.others, got, tt.want)
		}
	}
}
