package origin

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

// licences is THIRD_PARTY_LICENSES of the root of the repository. Its test makes both (go test ./cmd/patchbay/internal/origin -update).
//
//go:embed licences.gz
var licences []byte

// WriteLicences writes the names, licences and notices of the work of others in the program.
func WriteLicences(w io.Writer) error {
	z, err := gzip.NewReader(bytes.NewReader(licences))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}
