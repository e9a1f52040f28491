// Package eval tests servers, tools and prompts with language models. It gives tasks to models, and
// checks which tools they call, with which arguments, and what they answer.
//
// A file in YAML or JSON defines the tasks:
//
//	servers: [sqlite]               # names; or a mapping, as in mcp.json
//	models: [openai/gpt-5-mini]
//	runs: 3                         # of each task with each model
//	tasks:
//	  - name: tables
//	    prompt: Which tables are there?
//	    expect:
//	      calls:
//	        - tool: sqlite/list_tables
//	      never: ["*/write_query"]
//	      answer:
//	        contains: [dolphin_species, evolutionary_relationships]
//	      steps: 3
//
// [Runner.Run] runs it, each run with its own host, and returns a [Report], which can be shown as a
// table, JSON or JUnit XML.
//
// # Guarantees
//
//   - All faults of a file are reported before anything runs, each with its line.
//   - A run calls no tool of a server except those that it expects or that Allow names.
//   - Results are in the order of the file, regardless of the order in which runs end.
//   - The end of the context ends all runs, and Run waits for them.
package eval
