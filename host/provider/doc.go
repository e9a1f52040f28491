// Package provider opens language models: over the Chat Completions and Responses APIs of OpenAI,
// which many other servers have too, and the Messages API of Anthropic.
//
//	m, err := provider.Open("anthropic/claude-sonnet-4-5", provider.Options{})
//	m, err = provider.Open("openai/qwen3", provider.Options{BaseURL: "http://localhost:11434/v1"})
//
// A model sends each request once: wrap it in [model.Retry] for retries and timeouts. It sends a
// request again only if the server refuses a parameter by its name, without the parameter.
//
// # Guarantees
//
//   - Only the variables named in [Options] are read from the environment, through [Options.Env].
//   - Keys, headers and the query of [Options] never appear in errors, and are sent to no other
//     host: redirects are not followed.
//   - Thoughts, signatures and other members of messages and calls that an API does not have go back to
//     the server that sent them, as it sent them, and to no other (reasoning_content,
//     reasoning_details, extra_content, thinking). Those of a call are in its [model.Call.Opaque].
//   - An answer in which Anthropic's server pauses for its own tools (pause_turn) is sent back and
//     continued, up to 10 times. After that it counts as cut off.
//   - Schemas of tools are adapted to the API. An adapted schema may allow more than the
//     original, never less. Rules that the API refuses at the top of a schema are added to the
//     description of the tool; invalid keywords and broken references are left out.
//   - Pictures, sounds and files that the model does not accept are replaced by a text that says
//     so.
//   - At most 64 MiB of an answer are read.
package provider
