// Package yamlfile reads files that people write in YAML, or in JSON with the same members: all
// faults at once, each with its line, and unknown members are faults.
package yamlfile
