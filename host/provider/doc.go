// Package provider opens language models at those who serve them: over the Chat Completions and
// Responses APIs of OpenAI, which many other servers speak too, and the Messages API of Anthropic.
//
//	m, err := provider.Open("anthropic/claude-sonnet-4-5", provider.Options{})
//	m, err = provider.Open("openai/qwen3", provider.Options{BaseURL: "http://localhost:11434/v1"})
//
// What is opened asks once for each request: wrap it in [model.Retry] to ask again, and to end the
// silence of a dead provider.
//
// # Guarantees
//
//   - Nothing is read from the environment but what [Options] says, through [Options.Env].
//   - Keys, headers and the query of [Options] are in no error, and go to no other host: redirects are
//     not followed.
//   - Thoughts and the signatures of thoughts and calls go back to the server that sent them, as it sent
//     them, and to no other (reasoning_content, reasoning_details, extra_content, thinking).
//   - Schemas of tools are adapted to what the API takes. An adapted schema may allow more than
//     the original, never less. Rules that may not stand at its top are told in the description of
//     the tool; what is not well formed, or leads nowhere, is left out.
//   - Pictures, sounds and files that the model does not take become a text that says so.
//   - Of an answer 64 MiB are read at most.
package provider
