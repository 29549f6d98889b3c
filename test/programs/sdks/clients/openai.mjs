import OpenAI from 'openai';
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { noting, person, personName, personTool, personUse } from './person.mjs';

export function clientOf({ url, base = '/v1', key, fetch, headers, maxRetries = 0 }) {
  return new OpenAI({ baseURL: `${url}${base}`, apiKey: key, fetch, maxRetries, defaultHeaders: headers });
}

export function describeFailure({ status, code, type, param, requestID, message, name }) {
  return { name, status, code, type, param, requestId: requestID, message };
}

/** Builds the request of a chat completion. */
function chatOf({ model, prompt, messages, system, image, thinks, extra }) {
  const content = image
    ? [
        { type: 'text', text: prompt },
        { type: 'image_url', image_url: { url: image } },
      ]
    : prompt;
  const said = messages ?? [{ role: 'user', content }];
  const effort = thinks && { reasoning_effort: 'low' };
  return { model, messages: [...(system ? [{ role: 'system', content: system }] : []), ...said], ...effort, ...extra };
}

function told({ choices: [choice], usage, id, model, _request_id: requestId }) {
  const { content, parsed, tool_calls: calls } = choice.message;
  return {
    id,
    model,
    requestId,
    text: content,
    value: parsed,
    finish: choice.finish_reason,
    tool: calls?.[0] && { name: calls[0].function.name, value: calls[0].function.parsed_arguments },
    usage: usageOf(usage),
  };
}

function usageOf(usage) {
  return usage && { input: usage.prompt_tokens, output: usage.completion_tokens };
}

const chat = {
  models: async (input) => (await Array.fromAsync(clientOf(input).models.list())).map(({ id }) => id),
  model: async (input) => (await clientOf(input).models.retrieve(input.model)).id,

  ask: async (input) => told(await clientOf(input).chat.completions.create(chatOf(input))),

  async stream(input) {
    const options = { signal: input.signal };
    const request = { ...chatOf(input), stream: true, stream_options: { include_usage: true } };
    const stream = await clientOf(input).chat.completions.create(request, options);
    const texts = [];
    let finish = null;
    let usage;
    for await (const chunk of stream) {
      const [choice] = chunk.choices;
      if (choice?.delta.content) texts.push(choice.delta.content);
      if (choice?.delta.content) input.onText?.(choice.delta.content);
      finish = choice?.finish_reason ?? finish;
      usage = usageOf(chunk.usage) ?? usage;
    }
    return { text: texts.join(''), count: texts.length, finish, usage };
  },

  async helper(input) {
    const stream = clientOf(input).chat.completions.stream({
      ...chatOf(input),
      stream_options: { include_usage: true },
    });
    const texts = [];
    stream.on('content', (delta) => texts.push(delta));
    return { count: texts.length, ...told(await stream.finalChatCompletion()), streamed: texts.join('') };
  },

  /** Runs a conversation with these user texts, and sends each answer back with its thoughts. */
  async thoughts(input) {
    const messages = [];
    const turns = [];
    for (const content of input.said) {
      messages.push({ role: 'user', content });
      const stream = clientOf(input).chat.completions.stream(chatOf({ ...input, messages }));
      const pieces = [];
      stream.on('chunk', ({ choices: [choice] }) => pieces.push(choice?.delta.reasoning_content ?? ''));
      const { message } = (await stream.finalChatCompletion()).choices[0];
      turns.push({ thoughts: [pieces.join('')].filter((text) => text !== ''), text: message.content });
      messages.push({ role: 'assistant', content: message.content, reasoning_content: pieces.join('') });
    }
    return turns;
  },

  parse: async (input) =>
    told(
      await clientOf(input).chat.completions.parse({
        ...chatOf(input),
        response_format: zodResponseFormat(person, personName),
      }),
    ),

  async parseStream(input) {
    const stream = clientOf(input).chat.completions.stream({
      ...chatOf(input),
      response_format: zodResponseFormat(person, personName),
    });
    return told(await stream.finalChatCompletion());
  },

  async jsonObject(input) {
    const request = { ...chatOf(input), response_format: { type: 'json_object' } };
    const { text } = told(await clientOf(input).chat.completions.create(request));
    return { value: JSON.parse(text) };
  },

  tool: async (input) => told(await clientOf(input).chat.completions.parse(toolChatOf(input))),

  async toolStream(input) {
    const stream = clientOf(input).chat.completions.stream(toolChatOf(input));
    return told(await stream.finalChatCompletion());
  },

  loop: chatLoop,
  steps: (input) => chatSteps(input, false),
  stepsStream: (input) => chatSteps(input, true),
};

/** Runs the loop of the SDK itself. */
async function chatSteps(input, stream) {
  const called = [];
  const note = zodFunction({ name: personTool, description: personUse, parameters: person, function: noting(called) });
  const runner = clientOf(input).chat.completions.runTools({ ...chatOf(input), tools: [note], stream });
  return { text: await runner.finalContent(), called };
}

/** Sends the result of the call, and continues with the same tool. */
async function chatLoop(input) {
  const { tools, ...request } = toolChatOf(input);
  const { choices } = await clientOf(input).chat.completions.create({ ...request, tools });
  const [call] = choices[0].message.tool_calls;
  const result = { role: 'tool', tool_call_id: call.id, content: input.result };
  const messages = [...request.messages, choices[0].message, result];
  return told(await clientOf(input).chat.completions.create({ model: input.model, messages, tools }));
}

function toolChatOf(input) {
  const tool = zodFunction({ name: personTool, description: personUse, parameters: person });
  return { ...chatOf(input), tools: [tool], tool_choice: { type: 'function', function: { name: personTool } } };
}

/** Builds the request of a response. */
function responseOf({ model, prompt, messages, system, image, thinks, extra }) {
  const content = image
    ? [
        { type: 'input_text', text: prompt },
        { type: 'input_image', image_url: image, detail: 'auto' },
      ]
    : prompt;
  const said = messages ?? (image ? [{ role: 'user', content }] : prompt);
  const effort = thinks && { reasoning: { effort: 'low', summary: 'auto' } };
  return { model, input: said, ...(system && { instructions: system }), ...effort, ...extra };
}

function toldOfResponse({ id, model, output, output_text: text, output_parsed: value, status, usage, _request_id }) {
  const call = output.find(({ type }) => type === 'function_call');
  return {
    id,
    model,
    requestId: _request_id,
    text,
    value,
    finish: status,
    tool: call && { name: call.name, value: call.parsed_arguments },
    usage: usage && { input: usage.input_tokens, output: usage.output_tokens },
  };
}

const responses = {
  ask: async (input) => toldOfResponse(await clientOf(input).responses.create(responseOf(input))),

  async stream(input) {
    const options = { signal: input.signal };
    const events = await clientOf(input).responses.create({ ...responseOf(input), stream: true }, options);
    const texts = [];
    let end;
    for await (const event of events) {
      if (event.type === 'response.output_text.delta') {
        texts.push(event.delta);
        input.onText?.(event.delta);
      }
      if (event.type === 'response.completed') end = event.response;
    }
    const told = end && toldOfResponse(end);
    return { text: texts.join(''), count: texts.length, finish: told?.finish, usage: told?.usage };
  },

  async helper(input) {
    const stream = clientOf(input).responses.stream(responseOf(input));
    const texts = [];
    stream.on('response.output_text.delta', ({ delta }) => texts.push(delta));
    return { ...toldOfResponse(await stream.finalResponse()), streamed: texts.join('') };
  },

  /** Cuts the stream of a background response again and again, and continues it after the last event. */
  async survive(input) {
    const { responses } = clientOf(input);
    const events = [];
    const read = async (stream) => {
      for await (const event of stream) {
        events.push(event);
        if (events.length % 4 === 0) break; // closes the connection
      }
    };
    await read(await responses.create({ ...responseOf(input), background: true, stream: true }));
    const { id } = events[0].response;
    while (events.at(-1).type !== 'response.completed') {
      await read(await responses.retrieve(id, { stream: true, starting_after: events.at(-1).sequence_number }));
    }
    const texts = [];
    const helper = responses.stream({ response_id: id, starting_after: 5 });
    helper.on('response.output_text.delta', ({ delta }) => texts.push(delta));
    const told = toldOfResponse(await helper.finalResponse());
    const deltas = events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : []));
    const numbers = events.map((event) => event.sequence_number);
    return { ...told, numbers, streamed: deltas.join(''), later: texts.join('') };
  },

  async thoughts(input) {
    const messages = [];
    const turns = [];
    for (const content of input.said) {
      messages.push({ role: 'user', content });
      const stream = clientOf(input).responses.stream(responseOf({ ...input, messages }));
      const { output, output_text: text } = await stream.finalResponse();
      const items = output.filter(({ type }) => type === 'reasoning');
      turns.push({ thoughts: items.map(({ summary }) => summary.map((part) => part.text).join('')), text });
      messages.push(...output);
    }
    return turns;
  },

  parse: async (input) =>
    toldOfResponse(
      await clientOf(input).responses.parse({
        ...responseOf(input),
        text: { format: zodTextFormat(person, personName) },
      }),
    ),

  async parseStream(input) {
    const stream = clientOf(input).responses.stream({
      ...responseOf(input),
      text: { format: zodTextFormat(person, personName) },
    });
    return toldOfResponse(await stream.finalResponse());
  },

  tool: async (input) => toldOfResponse(await clientOf(input).responses.parse(toolResponseOf(input))),

  async toolStream(input) {
    return toldOfResponse(await clientOf(input).responses.stream(toolResponseOf(input)).finalResponse());
  },

  loop: responseLoop,
  steps: (input) => responseSteps(input, false),
  stepsStream: (input) => responseSteps(input, true),
  linkedSteps: (input) => linkedSteps(input, false),
  linkedStepsStream: (input) => linkedSteps(input, true),
};

async function responseLoop(input) {
  const { tools, ...request } = toolResponseOf(input);
  const { output } = await clientOf(input).responses.create({ ...request, tools });
  const { call_id } = output.find(({ type }) => type === 'function_call');
  const result = { type: 'function_call_output', call_id, output: input.result };
  const said = [{ role: 'user', content: request.input }, ...output, result];
  return toldOfResponse(await clientOf(input).responses.create({ model: input.model, input: said, tools }));
}

/** Runs a loop of tool calls: the SDK lacks one. */
async function responseSteps(input, stream) {
  const called = [];
  const note = noting(called);
  const { tools } = toolResponseOf(input);
  const said = [{ role: 'user', content: input.prompt }];
  for (;;) {
    const request = { model: input.model, input: said, tools };
    const { responses } = clientOf(input);
    const { output, output_text: text } = await (stream
      ? responses.stream(request).finalResponse()
      : responses.create(request));
    const calls = output.filter(({ type }) => type === 'function_call');
    if (calls.length === 0) return { text, called };
    const results = calls.map(({ call_id, arguments: json }) => {
      return { type: 'function_call_output', call_id, output: note(JSON.parse(json)) };
    });
    said.push(...output, ...results);
  }
}

/** Runs a loop in which each request names the previous response, and sends only new items. */
async function linkedSteps(input, stream) {
  const called = [];
  const note = noting(called);
  const { tools } = toolResponseOf(input);
  const { responses } = clientOf(input);
  let next = { input: input.prompt };
  for (;;) {
    const request = { model: input.model, tools, ...next };
    const {
      id,
      output,
      output_text: text,
    } = await (stream ? responses.stream(request).finalResponse() : responses.create(request));
    const calls = output.filter(({ type }) => type === 'function_call');
    if (calls.length === 0) return { text, called };
    const results = calls.map(({ call_id, arguments: json }) => {
      return { type: 'function_call_output', call_id, output: note(JSON.parse(json)) };
    });
    next = { input: results, previous_response_id: id };
  }
}

function toolResponseOf(input) {
  const tool = zodResponsesFunction({ name: personTool, description: personUse, parameters: person });
  return { ...responseOf(input), tools: [tool], tool_choice: { type: 'function', name: personTool } };
}

export const faces = { chat, responses };
