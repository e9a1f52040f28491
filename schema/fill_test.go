package schema_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"time"
)

// filler makes values of Go types. It ignores tags.
type filler struct {
	rng  *rand.Rand
	nils bool // pointers, slices and maps may be nil
}

func pick[T any](f *filler, list ...T) T { return list[f.rng.IntN(len(list))] }

func (f *filler) fill(v reflect.Value, depth int) {
	empty := depth > 5 || f.nils && f.rng.IntN(3) == 0
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = pick(f, time.Date(2026, 7, 28, 1, 2, 3, 0, time.UTC), time.Date(1999, 1, 1, 0, 0, 0, 7, time.FixedZone("", 3600)))
		return
	case *time.Duration:
		*p = pick(f, 0, 1, -90*time.Second, 1500*time.Microsecond, math.MaxInt64, math.MinInt64, time.Duration(f.rng.Int64()))
		return
	case *json.Number:
		*p = pick(f, json.Number("0"), "-1.50", "1e400", "123456789012345678901234567890")
		return
	case *json.RawMessage:
		*p = pick(f, json.RawMessage(`{}`), json.RawMessage(`[1,2.50]`), json.RawMessage(`null`))
		return
	case *netip.Addr:
		*p = pick(f, netip.IPv6Loopback(), netip.MustParseAddr("10.0.0.1"))
		return
	case *money:
		p.cents = 1 + f.rng.Int64N(1000)
		return
	case *any:
		*p = pick[any](f, "x", true, json.Number("1.5"), []any{json.Number("1")}, map[string]any{"a": "b"})
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.rng.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(pick(f, uint64(0), 1, 1<<(v.Type().Bits()-1), f.rng.Uint64())) << (64 - v.Type().Bits()) >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(pick(f, 0, 1, math.MaxUint64, f.rng.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Float32:
		v.SetFloat(float64(pick(f, 0, -0.1, math.MaxFloat32, f.rng.Float32())))
	case reflect.Float64:
		v.SetFloat(pick(f, 0, -1e-300, math.MaxFloat64, f.rng.NormFloat64()))
	case reflect.String:
		v.SetString(pick(f, "", "a", "red", "æ\n\"😀\u2028"))
	case reflect.Pointer:
		if !empty {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if !empty {
			v.Set(reflect.MakeSlice(v.Type(), f.rng.IntN(3), 3))
		}
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if !empty {
			v.Set(reflect.MakeMap(v.Type()))
			for range f.rng.IntN(3) {
				e := reflect.New(v.Type().Elem()).Elem()
				f.fill(e, depth+1)
				v.SetMapIndex(reflect.ValueOf(pick(f, "p", "", "q r")).Convert(v.Type().Key()), e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				f.fill(field, depth+1)
			} else if v.Type().Field(i).Anonymous && field.Kind() == reflect.Struct {
				f.fill(reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem(), depth)
			}
		}
	}
}
