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

function requestOf({ prompt, messages, maxRetries = 0 }) {
  return {
    messages: messages ?? [{ role: 'user', content: prompt }],
    maxRetries,
  };
}

function usageOf({ inputTokens, outputTokens }) {
  return { input: inputTokens, output: outputTokens };
}

function told({ text, finishReason, usage, response }) {
  return {
    text,
    finish: finishReason,
    usage: usageOf(usage),
    model: response.modelId,
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
      }
      if (failures.length > 0) throw failures[0];
      const [finish, usage] = await Promise.all([result.finishReason, result.usage]);
      return { text: texts.join(''), count: texts.length, finish, usage: usageOf(usage) };
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

export const faces = { compatible: faceOf(compatibleModel), openai: faceOf(openAiModel) };
