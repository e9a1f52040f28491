// Talks to language models with the official libraries: two conversations of a call each, with the
// streaming helpers and without. Prints what came as JSON.
//
//	node models.mjs chat|responses|messages URL
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const [api, url] = process.argv.slice(2);
const schema = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
const prompt = "What is 2 plus 3?";
const add = (input) => String(input.a + input.b);

const clients = {
  async chat(streamed) {
    const client = new OpenAI({ baseURL: url + "/v1", apiKey: "key", maxRetries: 0 });
    const messages = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", function: { name: "add", parameters: schema } }];
    for (;;) {
      const body = { model: "m", messages, tools };
      const answer = streamed
        ? await client.chat.completions.stream(body).finalChatCompletion()
        : await client.chat.completions.create(body);
      const { role, content, tool_calls } = answer.choices[0].message;
      if (!tool_calls?.length) return content;
      messages.push({ role, content, tool_calls });
      for (const call of tool_calls)
        messages.push({ role: "tool", tool_call_id: call.id, content: add(JSON.parse(call.function.arguments)) });
    }
  },
  async responses(streamed) {
    const client = new OpenAI({ baseURL: url + "/v1", apiKey: "key", maxRetries: 0 });
    const input = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", name: "add", parameters: schema, strict: false }];
    for (;;) {
      const body = { model: "m", input, tools, store: false };
      const answer = streamed ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
      const calls = answer.output.filter((item) => item.type === "function_call");
      if (!calls.length) return answer.output_text;
      for (const item of answer.output) {
        if (item.type === "message") input.push({ role: "assistant", content: item.content[0].text });
        else input.push({ type: item.type, call_id: item.call_id, name: item.name, arguments: item.arguments });
      }
      for (const call of calls)
        input.push({ type: "function_call_output", call_id: call.call_id, output: add(JSON.parse(call.arguments)) });
    }
  },
  async messages(streamed) {
    const client = new Anthropic({ baseURL: url, apiKey: "key", maxRetries: 0 });
    const messages = [{ role: "user", content: prompt }];
    const tools = [{ name: "add", input_schema: schema }];
    for (;;) {
      const body = { model: "m", max_tokens: 100, messages, tools };
      const answer = streamed ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
      const calls = answer.content.filter((block) => block.type === "tool_use");
      if (!calls.length) return answer.content.map((block) => block.text).join("");
      const content = answer.content.map((b) =>
        b.type === "text" ? { type: b.type, text: b.text } : { type: b.type, id: b.id, name: b.name, input: b.input });
      messages.push({ role: answer.role, content });
      messages.push({ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: add(c.input) })) });
    }
  },
};

console.log(JSON.stringify({ streamed: await clients[api](true), whole: await clients[api](false) }));
