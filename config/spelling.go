package config

import (
	"slices"
	"strings"
)

// misspelt returns the word of list that name looks like, or "" if it is one
// of them or like none.
func misspelt(name string, list []string) string {
	if slices.Contains(list, name) {
		return ""
	}
	lower := strings.ToLower(name)
	for _, word := range list {
		allowed := 2
		if len(word) < 6 {
			allowed = 1
		}
		if distance(lower, strings.ToLower(word)) <= allowed {
			return word
		}
	}
	return ""
}

// distance counts the letters to add, drop, change or swap with the next to
// get from a to b. Long names are far from everything.
func distance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
