// Package recording records what language models are asked and what they answer, at the level of HTTP, and gives the
// answers again later, without the model and without a key: so evaluations run where there is neither.
//
//	w, err := recording.Create("shop.model.jsonl", recording.Options{})
//	m, err := provider.Open("openai/gpt-5-mini", provider.Options{HTTPClient: &http.Client{Transport: w}})
//	…
//	err = w.Close()
//
//	p, err := recording.Open("shop.model.jsonl", recording.Options{})
//	m, err = provider.Open("openai/gpt-5-mini", provider.Options{HTTPClient: &http.Client{Transport: p}, Key: "none"})
//
// A recording has a line of JSON for each request with its answer. It can be kept beside the code. It has the messages
// of the conversation, but no header of a request, no query and no name of a host, so no key. Long texts in requests, such as
// pictures, are replaced by their hashes.
//
// # Guarantees
//
//   - A [Player] sends nothing.
//   - A request gets the answer of the same request: the same model, messages, tools and settings. The answers to requests
//     that are the same come in their order, and then from the first again. If there is no such request, it gets the answer
//     of one that differs in results of tools alone, which [Player.Similar] counts. Else it fails, and the error names the first
//     difference from the nearest request.
//   - Answers that a program would ask for again (429, 5xx, a stream that broke off) are not recorded.
//   - The file of a recording is complete after Close, or the former file is still there.
package recording
