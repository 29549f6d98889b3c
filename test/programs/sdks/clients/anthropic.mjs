import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { noting, person, personTool, personUse } from './person.mjs';

function clientOf({ url, base = '', key, fetch, headers, maxRetries = 0 }) {
  return new Anthropic({ baseURL: `${url}${base}`, apiKey: key, fetch, maxRetries, defaultHeaders: headers });
}

export function describeFailure({ status, type, error, requestID, message, name }) {
  return { name, status, type: type ?? error?.error?.type, code: null, requestId: requestID, message };
}

function requestOf({ model, prompt, messages, system, image, thinks, extra }) {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/.exec(image ?? '') ?? [];
  const content = image
    ? [
        { type: 'image', source: { type: 'base64', media_type, data } },
        { type: 'text', text: prompt },
      ]
    : prompt;
  return {
    model,
    max_tokens: 1024,
    messages: messages ?? [{ role: 'user', content }],
    ...(system && { system }),
    ...(thinks && { max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 2048 } }),
    ...extra,
  };
}

function told({ id, model, content, stop_reason: finish, usage, parsed_output: value, _request_id: requestId }) {
  const call = content.find(({ type }) => type === 'tool_use');
  return {
    id,
    model,
    requestId,
    finish,
    value,
    text: content.map(({ text = '' }) => text).join(''),
    tool: call && { name: call.name, value: call.input },
    usage: {
      input: usage.input_tokens + (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0),
      output: usage.output_tokens,
    },
  };
}

const messages = {
  models: async (input) => (await Array.fromAsync(clientOf(input).models.list())).map(({ id }) => id),
  model: async (input) => (await clientOf(input).models.retrieve(input.model)).id,

  ask: async (input) => told(await clientOf(input).messages.create(requestOf(input))),

  /** Returns the events unchanged. */
  async stream(input) {
    const options = { signal: input.signal };
    const events = await clientOf(input).messages.create({ ...requestOf(input), stream: true }, options);
    const texts = [];
    let finish = null;
    let usage;
    for await (const event of events) {
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
        texts.push(event.delta.text);
        input.onText?.(event.delta.text);
      }
      if (event.type === 'message_delta') {
        finish = event.delta.stop_reason;
        usage = told({ content: [], usage: { ...event.usage } }).usage;
      }
    }
    return { text: texts.join(''), count: texts.length, finish, usage };
  },

  async helper(input) {
    const stream = clientOf(input).messages.stream(requestOf(input));
    const texts = [];
    stream.on('text', (text) => texts.push(text));
    return { ...told(await stream.finalMessage()), streamed: texts.join('') };
  },

  /** Runs a conversation with these user texts, and sends each answer back with its thoughts. */
  async thoughts(input) {
    const messages = [];
    const turns = [];
    for (const content of input.said) {
      messages.push({ role: 'user', content });
      const answer = await clientOf(input)
        .messages.stream(requestOf({ ...input, messages }))
        .finalMessage();
      const blocks = answer.content.filter(({ type }) => type.endsWith('thinking'));
      const marks = blocks.map(({ signature, data }) => signature ?? data);
      turns.push({ thoughts: blocks.map(({ thinking = '' }) => thinking), marks, text: told(answer).text });
      messages.push({ role: 'assistant', content: answer.content });
    }
    return turns;
  },

  parse: async (input) => told(await clientOf(input).messages.parse(personRequestOf(input))),
  parseStream: async (input) => told(await clientOf(input).messages.stream(personRequestOf(input)).finalMessage()),
  tool: async (input) => told(await clientOf(input).messages.create(toolRequestOf(input))),
  toolStream: async (input) => told(await clientOf(input).messages.stream(toolRequestOf(input)).finalMessage()),

  async loop(input) {
    const { tools, ...request } = toolRequestOf(input);
    const { content } = await clientOf(input).messages.create({ ...request, tools });
    const { id } = content.find(({ type }) => type === 'tool_use');
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: input.result }] };
    const said = [...request.messages, { role: 'assistant', content }, result];
    return told(await clientOf(input).messages.create({ ...requestOf({ ...input, messages: said }), tools }));
  },

  steps: (input) => steps(input, (request) => clientOf(input).messages.create(request)),
  stepsStream: (input) => steps(input, (request) => clientOf(input).messages.stream(request).finalMessage()),

  async countTokens(input) {
    const { max_tokens: _, ...request } = requestOf(input);
    return (await clientOf(input).messages.countTokens(request)).input_tokens;
  },
};

/** Runs a loop of tool calls: the SDK lacks one. */
async function steps(input, ask) {
  const called = [];
  const note = noting(called);
  const { tools } = toolRequestOf(input);
  const { messages, ...request } = requestOf(input);
  for (;;) {
    const { content } = await ask({ ...request, messages, tools });
    const calls = content.filter(({ type }) => type === 'tool_use');
    if (calls.length === 0) return { text: content.map(({ text = '' }) => text).join(''), called };
    const results = calls.map(({ id, input: made }) => ({ type: 'tool_result', tool_use_id: id, content: note(made) }));
    messages.push({ role: 'assistant', content }, { role: 'user', content: results });
  }
}

function personRequestOf(input) {
  return { ...requestOf(input), output_config: { format: zodOutputFormat(person) } };
}

function toolRequestOf(input) {
  const tool = { name: personTool, description: personUse, input_schema: z.toJSONSchema(person) };
  return { ...requestOf(input), tools: [tool], tool_choice: { type: 'tool', name: personTool } };
}

export const faces = { messages };
