import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, Output, RetryError, stepCountIs, streamObject, streamText, tool } from 'ai';
import { noting, person, personName, personTool, personUse } from './person.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

function compatibleModel({ url, base = '/v1', key, fetch, model }) {
  const options = { name: 'prompt-relay', baseURL: `${url}${base}`, apiKey: key, fetch };
  return createOpenAICompatible({ ...options, includeUsage: true, supportsStructuredOutputs: true })(model);
}

function openAiModel({ url, base = '/v1', key, fetch, model }) {
  return createOpenAI({ baseURL: `${url}${base}`, apiKey: key, fetch })(model);
}

/** Describes a failure. If the request was sent several times, the last failure counts. */
export function describeFailure(error) {
  const last = RetryError.isInstance(error) ? error.lastError : error;
  const { statusCode: status, responseHeaders, data, message, name } = last;
  const { code, type, param } = data?.error ?? {};
  return { name, status, code, type, param, requestId: responseHeaders?.['x-request-id'], message };
}

function requestOf({ prompt, messages, system, image, signal, thinks, maxRetries = 0 }) {
  const content = image
    ? [
        { type: 'text', text: prompt },
        { type: 'file', mediaType: image.slice(5, image.indexOf(';')), data: image.slice(image.indexOf(',') + 1) },
      ]
    : prompt;
  return {
    messages: messages ?? [{ role: 'user', content }],
    maxRetries,
    ...(system && { instructions: system }),
    ...(thinks && {
      reasoning: 'low',
      providerOptions: { openai: { forceReasoning: true, reasoningSummary: 'auto' } },
    }),
    ...(signal && { abortSignal: signal }),
  };
}

function usageOf({ inputTokens, outputTokens }) {
  return { input: inputTokens, output: outputTokens };
}

function told({ text, finishReason, usage, toolCalls, response }) {
  const [call] = toolCalls ?? [];
  return {
    text,
    finish: finishReason,
    usage: usageOf(usage),
    model: response.modelId,
    requestId: response.headers?.['x-request-id'],
    tool: call && { name: call.toolName, value: call.input },
  };
}

function faceOf(modelOf) {
  return {
    ask: async (input) => told(await generateText({ ...requestOf(input), model: modelOf(input) })),

    async stream(input) {
      const failures = [];
      const onError = ({ error }) => void failures.push(error);
      const result = streamText({ ...requestOf(input), model: modelOf(input), onError });
      const texts = [];
      for await (const text of result.textStream) {
        texts.push(text);
        input.onText?.(text);
      }
      if (failures.length > 0) throw failures[0];
      if (input.signal?.aborted) return {};
      const [finish, usage] = await Promise.all([result.finishReason, result.usage]);
      return { text: texts.join(''), count: texts.length, finish, usage: usageOf(usage) };
    },

    /** Runs a conversation with these user texts, and sends each answer back with its thoughts. */
    async thoughts(input) {
      const messages = [];
      const turns = [];
      for (const content of input.said) {
        messages.push({ role: 'user', content });
        const result = streamText({ ...requestOf({ ...input, messages }), model: modelOf(input), onError() {} });
        const [parts, text, { messages: added }] = await Promise.all([result.reasoning, result.text, result.response]);
        turns.push({ thoughts: parts.map((part) => part.text), text });
        messages.push(...added);
      }
      return turns;
    },

    async parse(input) {
      const output = Output.object({ schema: person, name: personName });
      const result = await generateText({ ...requestOf(input), model: modelOf(input), output });
      return { ...told(result), value: result.output };
    },

    async parseStream(input) {
      const output = Output.object({ schema: person, name: personName });
      const result = streamText({ ...requestOf(input), model: modelOf(input), output, onError() {} });
      for await (const _part of result.partialOutputStream);
      return { value: await result.output };
    },

    async streamObject(input) {
      const result = streamObject({ ...requestOf(input), model: modelOf(input), schema: person, onError() {} });
      for await (const _part of result.partialObjectStream);
      return { value: await result.object };
    },

    async generateObject(input) {
      const { object } = await generateObject({ ...requestOf(input), model: modelOf(input), schema: person });
      return { value: object };
    },

    async jsonObject(input) {
      const { object } = await generateObject({ ...requestOf(input), model: modelOf(input), output: 'no-schema' });
      return { value: object };
    },

    async tool(input) {
      return told(await generateText({ ...requestOf(input), ...calling, model: modelOf(input) }));
    },

    /** Runs the loop of the SDK: the first step must call a tool, the second one receives the result. */
    async loop(input) {
      const tools = {
        [personTool]: tool({ description: personUse, inputSchema: person, execute: async () => input.result }),
      };
      const prepareStep = ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? calling.toolChoice : 'auto' });
      const stopWhen = stepCountIs(2);
      const providerOptions = { openai: { store: false } }; // else the SDK sends references to stored items
      const options = { ...requestOf(input), model: modelOf(input), tools, prepareStep, stopWhen, providerOptions };
      return told(await generateText(options));
    },

    async steps(input) {
      const called = [];
      const { text } = await generateText({ ...stepping(input, called), model: modelOf(input) });
      return { text, called };
    },

    async stepsStream(input) {
      const called = [];
      const result = streamText({ ...stepping(input, called), model: modelOf(input), onError() {} });
      return { text: await result.text, called };
    },

    async toolStream(input) {
      const result = streamText({ ...requestOf(input), ...calling, model: modelOf(input), onError() {} });
      const [call] = await result.toolCalls;
      return { finish: await result.finishReason, tool: { name: call.toolName, value: call.input } };
    },
  };
}

/** Builds a request whose tool the SDK runs itself, for as many steps as the model requests. */
function stepping(input, called) {
  const note = noting(called);
  const tools = {
    [personTool]: tool({ description: personUse, inputSchema: person, execute: async (made) => note(made) }),
  };
  const providerOptions = { openai: { store: false } }; // else the SDK sends references to stored items
  return { ...requestOf(input), tools, stopWhen: stepCountIs(9), providerOptions };
}

const calling = {
  tools: { [personTool]: tool({ description: personUse, inputSchema: person }) },
  toolChoice: { type: 'tool', toolName: personTool },
};

export const faces = { compatible: faceOf(compatibleModel), openai: faceOf(openAiModel) };
