package ownfile

import (
	"encoding/json"
	"fmt"
)

// Newer returns an error if the JSON object in a file was written by a newer program: its member "version" is above known, the version
// that this program writes. A file without the member has version 1. Newer says nothing about a file that is not such an object.
func Newer(path string, content []byte, known int) error {
	var f struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(content, &f) != nil || f.Version <= known {
		return nil
	}
	return fmt.Errorf("%s was written by a newer version (format %d, this one knows %d); upgrade", path, f.Version, known)
}
