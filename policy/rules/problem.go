package rules

import "github.com/patchbay-dev/patchbay/internal/yamlfile"

// Problem is one fault of a file.
type Problem = yamlfile.Problem

// Problems are the faults of a file, in its order. As an error its text has one line for
// each.
type Problems = yamlfile.Problems
