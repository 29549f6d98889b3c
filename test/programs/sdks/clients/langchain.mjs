import { AIMessage, AIMessageChunk, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent } from 'langchain';
import { noting, person, personName, personTool, personUse } from './person.mjs';

function modelOf({ url, base = '/v1', key, fetch, model, maxRetries = 0 }, useResponsesApi) {
  const configuration = { baseURL: `${url}${base}`, fetch };
  return new ChatOpenAI({ model, apiKey: key, configuration, maxRetries, useResponsesApi, streamUsage: true });
}

/** Describes a failure of the provider's SDK that LangChain has wrapped. */
export function describeFailure(error) {
  const { status, code, type, param, requestID, message, name } = error;
  const { cause } = error;
  return {
    name,
    status: status ?? cause?.status,
    code: code ?? cause?.code,
    type: type ?? cause?.type,
    param,
    requestId: requestID ?? cause?.requestID,
    message,
  };
}

function messagesOf({ prompt, messages = [{ role: 'user', content: prompt }] }) {
  return messages.map(({ role, content }) => (role === 'user' ? new HumanMessage(content) : new AIMessage(content)));
}

function told({ text, usage_metadata: usage, response_metadata: metadata }) {
  return {
    text,
    finish: metadata.finish_reason ?? metadata.status,
    model: metadata.model_name ?? metadata.model,
    usage: usage && { input: usage.input_tokens, output: usage.output_tokens },
  };
}

function agentOf(model) {
  const called = [];
  const note = tool(noting(called), { name: personTool, description: personUse, schema: person });
  return { agent: createAgent({ model, tools: [note] }), called };
}

function faceOf(useResponsesApi) {
  const structured = (method) => async (input) => {
    const model = modelOf(input, useResponsesApi).withStructuredOutput(person, { name: personName, method });
    return { value: await model.invoke(messagesOf(input)) };
  };
  return {
    ask: async (input) => told(await modelOf(input, useResponsesApi).invoke(messagesOf(input))),

    async stream(input) {
      const chunks = await modelOf(input, useResponsesApi).stream(messagesOf(input));
      const texts = [];
      let whole;
      for await (const chunk of chunks) {
        if (chunk.text !== '') texts.push(chunk.text);
        whole = whole === undefined ? chunk : whole.concat(chunk);
      }
      return { ...told(whole), text: texts.join(''), count: texts.length };
    },

    jsonSchema: structured('jsonSchema'),
    functionCalling: structured('functionCalling'),
    jsonMode: structured('jsonMode'),
    parse: structured(undefined),

    /** Runs an agent of LangChain. */
    async steps(input) {
      const { agent, called } = agentOf(modelOf(input, useResponsesApi));
      const { messages } = await agent.invoke({ messages: messagesOf(input) });
      return { text: messages.at(-1).text, called };
    },

    async stepsStream(input) {
      const { agent, called } = agentOf(modelOf(input, useResponsesApi));
      const texts = [];
      for await (const [chunk] of await agent.stream({ messages: messagesOf(input) }, { streamMode: 'messages' })) {
        if (chunk instanceof AIMessageChunk && chunk.text !== '') texts.push(chunk.text);
      }
      return { text: texts.join(''), called };
    },
  };
}

export const faces = { chat: faceOf(false), responses: faceOf(true) };
