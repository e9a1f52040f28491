// Talks to servers of many providers with the official libraries: three turns, whole, and calls of a
// stream. Prints the answers of each as JSON.
//
//	node wires.mjs '{"NAME": "BASE URL", ...}' KEY MODEL ONE-CALL TEXT TWO-CALLS
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const [bases, apiKey, model, oneCall, text, twoCalls] = process.argv.slice(2);
const schema = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
const add = (input) => String(input.a + input.b);
const plain = (content) => (typeof content === "string" ? content : content.map((part) => part.text ?? "").join(""));

async function chat(baseURL) {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const tools = [{ type: "function", function: { name: "add", parameters: schema } }];
  const messages = [];
  const whole = [];
  for (const prompt of [oneCall, text, twoCalls]) {
    messages.push({ role: "user", content: prompt });
    for (;;) {
      const answer = await client.chat.completions.create({ model, messages, tools });
      const message = answer.choices[0].message;
      messages.push(message); // whole, as the documentation of Gemini and DeepSeek asks
      if (!message.tool_calls?.length) {
        whole.push(plain(message.content));
        break;
      }
      for (const call of message.tool_calls)
        messages.push({ role: "tool", tool_call_id: call.id, content: add(JSON.parse(call.function.arguments)) });
    }
  }
  const calls = [];
  const stream = await client.chat.completions.create({ model, messages: [{ role: "user", content: twoCalls }], tools, stream: true });
  for await (const chunk of stream)
    for (const call of chunk.choices[0]?.delta.tool_calls ?? []) {
      if (call.id) calls.push(call.function.name + " ");
      calls[calls.length - 1] += call.function.arguments;
    }
  return { whole, streamed: calls };
}

async function messagesOf(baseURL) {
  const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, maxRetries: 0 });
  const tools = [{ name: "add", input_schema: schema }];
  const messages = [];
  const whole = [];
  for (const prompt of [oneCall, text, twoCalls]) {
    messages.push({ role: "user", content: prompt });
    for (;;) {
      const answer = await client.messages.create({ model, max_tokens: 100, messages, tools });
      messages.push({ role: answer.role, content: answer.content });
      const calls = answer.content.filter((block) => block.type === "tool_use");
      if (!calls.length) {
        whole.push(answer.content.map((block) => block.text ?? "").join(""));
        break;
      }
      messages.push({ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: add(c.input) })) });
    }
  }
  const final = await client.messages.stream({ model, max_tokens: 100, messages: [{ role: "user", content: twoCalls }], tools }).finalMessage();
  const calls = final.content.filter((block) => block.type === "tool_use");
  return { whole, streamed: calls.map((c) => c.name + " " + JSON.stringify(c.input)) };
}

const out = {};
for (const [name, base] of Object.entries(JSON.parse(bases))) out[name] = await (name === "anthropic" ? messagesOf(base) : chat(base));
console.log(JSON.stringify(out));
