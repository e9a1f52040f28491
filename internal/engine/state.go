package engine

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/store"
)

// state is the state of a call between two rounds, sealed in requestState.
type state struct {
	Expires  int64                      `json:"e"` // Unix seconds
	Bind     []byte                     `json:"b"` // digest of the call, see bind
	Round    int                        `json:"r,omitzero"`
	Volatile int                        `json:"v,omitzero"`
	Answers  map[string]json.RawMessage `json:"a,omitempty"` // of earlier rounds, by question
	Kept     map[string]json.RawMessage `json:"k,omitempty"` // values of Remember
	Node     string                     `json:"n,omitempty"` // of RememberHere and Stay; empty: any can continue the call
}

// maxState bounds a requestState that travels through the client, in bytes of its JSON. A larger
// state needs a store.
const maxState = 256 << 10

// Sealer seals and opens requestState. It is safe for concurrent use.
type Sealer struct {
	keys    func() ([][]byte, error)
	derived atomic.Pointer[derived]
	name    []byte
	ttl     time.Duration
	store   store.States
}

// derived is what has been made of keys.
type derived struct {
	keys [][]byte
	ring []sealKey
}

type sealKey struct {
	id   [4]byte
	aead cipher.AEAD
}

// NewSealer makes a sealer for the server called name. Keys returns the keys as they are now: the first seals, and each opens.
// If keys is nil, a random one is used, valid only in this process. If ttl is zero, it means 15
// minutes. States may be nil.
func NewSealer(name string, keys func() ([][]byte, error), ttl time.Duration, states store.States) *Sealer {
	if ttl == 0 {
		ttl = 15 * time.Minute
	}
	if keys == nil {
		own := make([]byte, 32)
		rand.Read(own)
		keys = func() ([][]byte, error) { return [][]byte{own}, nil }
	}
	return &Sealer{keys: keys, name: []byte("patchbay requestState 1\x00" + name), ttl: ttl, store: states}
}

// ring returns what is made of the keys as they are now. It is made once, until they change.
func (s *Sealer) ring() ([]sealKey, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	if d := s.derived.Load(); d != nil && slices.EqualFunc(d.keys, keys, bytes.Equal) {
		return d.ring, nil
	}
	if err := CheckKeys(keys); err != nil {
		return nil, err
	}
	d := &derived{}
	for _, k := range keys {
		// A key of any length becomes one of AES-256; its id is a digest of the derived key and
		// does not reveal it.
		sum := sha256.Sum256(append([]byte("patchbay state key 1\x00"), k...))
		block, err := aes.NewCipher(sum[:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		id := sha256.Sum256(sum[:])
		d.keys, d.ring = append(d.keys, bytes.Clone(k)), append(d.ring, sealKey{[4]byte(id[:4]), aead})
	}
	s.derived.Store(d)
	return d.ring, nil
}

// CheckKeys returns the first fault of keys that a Sealer is given.
func CheckKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("no state key is there")
	}
	for i, k := range keys {
		if len(k) < 16 {
			return fmt.Errorf("state key %d has %d bytes; use at least 16, better 32 random ones", i, len(k))
		}
	}
	return nil
}

var errState = errors.New("invalid or expired state")

func (s *Sealer) seal(ctx context.Context, st state, bound []byte) (string, error) {
	st.Expires = time.Now().Add(s.ttl).Unix()
	st.Bind = bound
	plain, err := jsonx.Marshal(st)
	if err != nil {
		return "", err
	}
	if s.store != nil {
		ref, err := s.store.Put(ctx, plain, s.ttl)
		if err != nil {
			return "", fmt.Errorf("keep the state of the call: %w", err)
		}
		plain = slices.Concat(bound, []byte(ref))
	} else if len(plain) > maxState {
		return "", fmt.Errorf("the answers and Once results of the call take %d bytes, over %d; set StateConfig.Store", len(plain), maxState)
	}
	ring, err := s.ring()
	if err != nil {
		return "", err
	}
	k := ring[0]
	return base64.RawURLEncoding.EncodeToString(k.aead.Seal(k.id[:], nil, plain, s.name)), nil
}

// node returns the process that has what the call of a state waits for, "" if any process can continue it. A state in a store
// does not say that before it is taken.
func (s *Sealer) node(token string, bound []byte) string {
	if s.store != nil {
		return ""
	}
	st, err := s.open(context.Background(), token, bound)
	if err != nil {
		return "" // the run that refuses it says why
	}
	return st.Node
}

func (s *Sealer) open(ctx context.Context, token string, bound []byte) (state, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	// Several texts decode to the same bytes, because line breaks and the last bits are ignored.
	// Only the text that was issued is accepted.
	if err != nil || len(sealed) < 4 || base64.RawURLEncoding.EncodeToString(sealed) != token {
		return state{}, errState
	}
	ring, err := s.ring()
	if err != nil {
		return state{}, err
	}
	i := slices.IndexFunc(ring, func(k sealKey) bool { return string(k.id[:]) == string(sealed[:4]) })
	if i < 0 {
		return state{}, errState
	}
	plain, err := ring[i].aead.Open(nil, nil, sealed[4:], s.name)
	if err != nil {
		return state{}, errState
	}
	if s.store != nil {
		// A reference works once, so it is not taken for a call that it does not belong to.
		ref, ours := bytes.CutPrefix(plain, bound)
		if !ours {
			return state{}, errState
		}
		if plain, err = s.store.Take(ctx, string(ref)); err != nil {
			return state{}, errState
		}
	}
	var st state
	if err := jsonx.Unmarshal(plain, &st); err != nil {
		return state{}, errState
	}
	if string(st.Bind) != string(bound) || time.Now().Unix() > st.Expires {
		return state{}, errState
	}
	return st, nil
}

// bind returns a digest of the call that a state belongs to: principal, method and every param
// except those that change between rounds. Members are sorted, so that a client may write the
// same params in another order.
func bind(msg *jsonrpc.Message, principal string) []byte {
	params := jsonx.Without(nil, jsonx.OrObject(msg.Params), "_meta", "inputResponses", "requestState")
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %d %s ", len(principal), principal, len(msg.Method), msg.Method)
	h.Write(jsonx.Canonical(params))
	return h.Sum(nil)[:16]
}
