package main

import (
	"encoding/json"
	"strings"
	"time"
)

// contents writes what is inside of the programs, as CycloneDX 1.6.
func (r *release) contents() error {
	type entry map[string]any
	var components []entry
	for _, m := range r.modules {
		c := entry{"type": "library", "name": m.path, "version": m.version, "licenses": []entry{{"license": entry{"id": m.licence}}}}
		if strings.Contains(m.path, ".") || m.path == "std" {
			purl := "pkg:golang/" + m.path + "@" + m.version
			c["purl"], c["bom-ref"] = purl, purl
		}
		if m.sum != "" {
			c["properties"] = []entry{{"name": "go:sum", "value": m.sum}}
		}
		components = append(components, c)
	}
	own := "pkg:golang/github.com/patchbay-dev/patchbay@v" + r.version
	text, err := json.MarshalIndent(entry{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": entry{
			"timestamp": r.time.Format(time.RFC3339),
			"component": entry{"type": "application", "name": "patchbay", "version": r.version, "purl": own, "bom-ref": own, "licenses": []entry{{"license": entry{"id": licence}}}},
		},
		"components": components,
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.add("patchbay_"+r.version+"_sbom.cdx.json", append(text, '\n'))
}
