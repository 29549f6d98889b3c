import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Ollama } from 'ollama';
import { z } from 'zod';
import { noting, person, personTool, personUse } from './person.mjs';

const schema = z.toJSONSchema(person);
const tools = [{ type: 'function', function: { name: personTool, description: personUse, parameters: schema } }];

export function describeFailure({ name, status_code: status, message }) {
  return { name, status, message };
}

function clientOf({ url, key, fetch }) {
  return new Ollama({ host: url, fetch, headers: { authorization: `Bearer ${key}` } });
}

function requestOf({ model, prompt, messages, system, image, extra }) {
  const images = image && [image.slice(image.indexOf(',') + 1)];
  const said = messages ?? [{ role: 'user', content: prompt, ...(images && { images }) }];
  return { model, messages: [...(system ? [{ role: 'system', content: system }] : []), ...said], ...extra };
}

function told({ message, response, thinking, model, done_reason: finish, prompt_eval_count, eval_count }) {
  const usage = { input: prompt_eval_count, output: eval_count };
  const said = { text: message?.content ?? response, thinking: message?.thinking ?? thinking };
  return { ...said, model, finish, usage };
}

/** Combines the pieces of a stream to a whole answer, as programs do. */
async function gathered(stream, onText) {
  const whole = { role: 'assistant', content: '', thinking: '', tool_calls: [] };
  const texts = [];
  let last;
  for await (const part of stream) {
    const { content = '', thinking = '', tool_calls: calls = [] } = part.message ?? { content: part.response };
    if (content !== '') texts.push(content);
    if (content !== '') onText?.(content);
    whole.content += content;
    whole.thinking += thinking;
    whole.tool_calls.push(...calls);
    last = part;
  }
  return { message: whole, last, count: texts.length };
}

/** Sends requests until the model calls no more tools. */
async function loop(input, ask) {
  const called = [];
  const note = noting(called);
  const { messages } = requestOf(input);
  for (;;) {
    const message = await ask({ model: input.model, messages, tools });
    messages.push(message);
    if (!message.tool_calls?.length) return { text: message.content, called };
    for (const { function: made } of message.tool_calls)
      messages.push({ role: 'tool', tool_name: made.name, content: note(made.arguments) });
  }
}

const client = {
  ask: async (input) => told(await clientOf(input).chat(requestOf(input))),

  async stream(input) {
    const ollama = clientOf(input);
    input.signal?.addEventListener('abort', () => ollama.abort());
    const stream = await ollama.chat({ ...requestOf(input), stream: true });
    const { message, last, count } = await gathered(stream, input.onText);
    return { ...told(last), text: message.content, thinking: message.thinking, count };
  },

  async generate(input) {
    const { model, prompt, system, extra } = input;
    const request = { model, prompt, system, ...extra };
    const whole = told(await clientOf(input).generate(request));
    const streamed = await gathered(await clientOf(input).generate({ ...request, stream: true }));
    return { ...whole, streamed: streamed.message.content };
  },

  async format(input) {
    const { message } = await clientOf(input).chat({ ...requestOf(input), format: schema });
    return { value: person.parse(JSON.parse(message.content)) };
  },

  async json(input) {
    const { message } = await clientOf(input).chat({ ...requestOf(input), format: 'json' });
    return { value: JSON.parse(message.content) };
  },

  steps: (input) => loop(input, async (request) => (await clientOf(input).chat(request)).message),

  stepsStream: (input) =>
    loop(input, async (request) => (await gathered(await clientOf(input).chat({ ...request, stream: true }))).message),

  async models(input) {
    const ollama = clientOf(input);
    const [list, running] = [await ollama.list(), await ollama.ps()];
    const names = ({ models }) => models.map(({ name }) => name);
    const { capabilities } = await ollama.show({ model: input.model });
    const { version } = await ollama.version();
    return { listed: names(list), running: names(running), capabilities, version };
  },

  pull: (input) => clientOf(input).pull({ model: 'llama3' }),
};

/** Starts the MCP server `ollama-mcp`, which supports only Ollama, and connects an MCP client to it. */
async function withProgram({ url, key }, use) {
  const manifest = createRequire(import.meta.url).resolve('ollama-mcp/package.json');
  const { bin } = JSON.parse(await readFile(manifest, 'utf8'));
  const program = new URL(bin['ollama-mcp'], `file://${manifest}`).pathname;
  const env = { PATH: process.env.PATH, OLLAMA_HOST: url, OLLAMA_API_KEY: key };
  const mcp = new Client({ name: 'test', version: '1.0.0' });
  await mcp.connect(new StdioClientTransport({ command: process.execPath, args: [program], env }));
  try {
    return await use(mcp);
  } finally {
    await mcp.close();
  }
}

const program = {
  tool: (input) =>
    withProgram(input, async (mcp) => {
      const { content, isError } = await mcp.callTool({ name: input.prompt, arguments: input.extra });
      return { text: content[0].text, isError: isError === true };
    }),
};

export const faces = { client, program };
