// Package toolsearch finds tools by what they do, for a model that does not see the list of all tools.
//
//	index := toolsearch.New(tools)
//	for _, hit := range index.Find("give the client the money back", 5) {
//		fmt.Println(hit.Name)
//	}
//
// # Guarantees
//
//   - The search is by words (BM25) over names, titles, descriptions and arguments, with endings cut
//     off, words of like meaning (words.txt), beginnings of words, and words with a typing mistake. It
//     needs no model and no network.
//   - The same tools and the same query give the same hits, in the same order.
//   - An Index does not change after New; it is safe for concurrent use.
package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Tool is what the search sees of a tool.
type Tool struct {
	Name        string
	Title       string
	Description string
	Arguments   string // names of the arguments and what they mean, in any form
}

// Hit is a tool that was found.
type Hit struct {
	Tool  int // index in the tools of New
	Name  string
	Score float64 // above 0; only comparable with other hits of the same query
}

// The weights of a word in the parts of a tool.
const (
	inName        = 2.5
	inTitle       = 2
	inDescription = 1.5
	inArguments   = 0.5

	maxText = 4 << 10 // of a part: bytes that are looked at
)

// The usual constants of BM25: how soon further occurrences of a word cease to count, and how much
// longer tools are put behind.
const (
	saturation = 1.2
	lengths    = 0.5
)

// The weights of words that are not the one of the query.
const (
	likeWord     = 0.6
	beginning    = 0.5 // the word of the query begins a longer one, or the other way round
	typo         = 0.4
	minBeginning = 4
	maxWords     = 64 // of a query
)

// posting says how much a word counts in a tool.
type posting struct {
	tool   int32
	weight float32
}

// Index is what a search looks through. New makes one.
type Index struct {
	names    []string
	postings map[string][]posting
	sizes    []float32 // of tools
	mean     float64
	sorted   []string           // the words, for beginnings
	trigrams map[string][]int32 // indexes in sorted
}

// New returns the index of a list of tools. Of a part of a tool it sees the first 4 KiB.
func New(tools []Tool) *Index {
	x := &Index{names: make([]string, len(tools)), postings: map[string][]posting{}, sizes: make([]float32, len(tools)), trigrams: map[string][]int32{}}
	total := 0.0
	for i, t := range tools {
		x.names[i] = t.Name
		counts := map[string]float32{}
		add := func(text string, weight float32) {
			split(text[:min(len(text), maxText)], func(word string) {
				counts[stem(word)] += weight
				x.sizes[i] += weight
			})
		}
		add(t.Name, inName)
		add(t.Title, inTitle)
		add(t.Description, inDescription)
		add(t.Arguments, inArguments)
		for word, weight := range counts {
			x.postings[word] = append(x.postings[word], posting{int32(i), weight})
		}
		total += float64(x.sizes[i])
	}
	x.mean = max(1, total/float64(max(1, len(tools))))
	for word := range x.postings {
		x.sorted = append(x.sorted, word)
	}
	slices.Sort(x.sorted)
	for i, word := range x.sorted {
		for _, gram := range grams(word) {
			x.trigrams[gram] = append(x.trigrams[gram], int32(i))
		}
	}
	return x
}

// Find returns the tools that fit a query best, at most n, the best first. It returns none if no
// word of the query fits. Of a query it sees the first 4 KiB and the first 64 words.
func (x *Index) Find(query string, n int) []Hit {
	var terms, stops []string
	split(query[:min(len(query), maxText)], func(word string) {
		list := &terms
		if words().stop[word] {
			list = &stops
		}
		if w := stem(word); !slices.Contains(*list, w) && len(*list) < maxWords {
			*list = append(*list, w)
		}
	})
	if terms == nil {
		terms = stops // they may be a name
	}
	scores := make([]float64, len(x.names))
	best := make([]float64, len(x.names)) // of one term
	matched := make([]int, len(x.names))
	var touched []int32
	for _, term := range terms {
		touched = touched[:0]
		for word, weight := range x.forms(term) {
			list := x.postings[word]
			idf := math.Log(1 + (float64(len(x.names))-float64(len(list))+0.5)/(float64(len(list))+0.5))
			for _, p := range list {
				f := float64(p.weight)
				s := weight * idf * f * (saturation + 1) / (f + saturation*(1-lengths+lengths*float64(x.sizes[p.tool])/x.mean))
				if best[p.tool] == 0 {
					touched = append(touched, p.tool)
				}
				best[p.tool] = max(best[p.tool], s)
			}
		}
		for _, tool := range touched {
			scores[tool] += best[tool]
			matched[tool]++
			best[tool] = 0
		}
	}
	n = min(max(0, n), len(x.names))
	hits := make([]Hit, 0, n+1) // the best so far, sorted
	for i, s := range scores {
		if s == 0 {
			continue
		}
		hit := Hit{i, x.names[i], s * math.Sqrt(float64(matched[i])/float64(len(terms)))}
		at, _ := slices.BinarySearchFunc(hits, hit, func(a, b Hit) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Tool, b.Tool))
		})
		if at < n {
			hits = slices.Insert(hits, at, hit)
			hits = hits[:min(len(hits), n)]
		}
	}
	return hits
}

// forms returns the words of the index that may be meant by a word of a query, with their weight.
func (x *Index) forms(term string) map[string]float64 {
	forms := map[string]float64{}
	add := func(word string, weight float64) {
		if _, ok := x.postings[word]; ok {
			forms[word] = max(forms[word], weight)
		}
	}
	add(term, 1)
	for _, word := range words().alike[term] {
		add(word, likeWord)
	}
	if len(term) >= minBeginning {
		from, _ := slices.BinarySearch(x.sorted, term)
		for _, word := range x.sorted[from:] {
			if !strings.HasPrefix(word, term) {
				break
			}
			add(word, beginning)
		}
		for end := minBeginning; end < len(term); end++ {
			add(term[:end], beginning*float64(end)/float64(len(term)))
		}
	}
	if len(forms) == 0 {
		x.misspelled(term, add)
	}
	return forms
}

// misspelled adds the words that share most of their trigrams with a word.
func (x *Index) misspelled(term string, add func(string, float64)) {
	own := grams(term)
	shared := map[int32]int{}
	for _, gram := range own {
		for _, i := range x.trigrams[gram] {
			shared[i]++
		}
	}
	for i, n := range shared {
		word := x.sorted[i]
		if like := 2 * float64(n) / float64(len(own)+len(grams(word))); like >= 0.5 {
			add(word, typo*like)
		}
	}
}

// grams returns the sequences of three bytes of a word, with its beginning and end marked.
func grams(word string) []string {
	word = "^" + word + "$"
	if len(word) < 3 {
		return nil
	}
	out := make([]string, 0, len(word)-2)
	for i := range len(word) - 2 {
		out = append(out, word[i:i+3])
	}
	return out
}
