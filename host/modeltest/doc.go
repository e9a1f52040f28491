// Package modeltest is a language model for tests: a server on the loopback address that speaks
// the Chat Completions, Responses and Messages APIs, streamed or not, and answers by a script.
//
//	m := modeltest.Open(t, "messages", modeltest.MustParse(`
//	turns:
//	  - when: {user: "2 plus 3", tools: [add]}
//	    answer:
//	      - text: I add them.
//	      - call: {name: add, arguments: {a: 2, b: 3}}
//	  - when: {results: {add: "5"}}
//	    answer: [text: It is 5.]
//	`))
//
// One script serves all APIs, and models that write their calls as text ([model.Text]) too.
// Requests are checked as strictly as the real servers do, and refused in their words, so that
// errors from a client do not go unnoticed. A request that fits no turn fails the test.
package modeltest
