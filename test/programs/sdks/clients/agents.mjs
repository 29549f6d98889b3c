import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { noting, person, personTool, personUse } from './person.mjs';

setTracingDisabled(true); // the SDK would send traces to OpenAI

export function describeFailure({ status, message, name }) {
  return { name, status, message };
}

function agentOf({ url, fetch, model }, Model) {
  const called = [];
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', fetch, maxRetries: 0 });
  const note = tool({ name: personTool, description: personUse, parameters: person, execute: noting(called) });
  const modelSettings = { store: false };
  return { agent: new Agent({ name: 'Noter', model: new Model(client, model), tools: [note], modelSettings }), called };
}

function faceOf(Model) {
  return {
    async steps(input) {
      const { agent, called } = agentOf(input, Model);
      return { text: (await run(agent, input.prompt)).finalOutput, called };
    },

    async stepsStream(input) {
      const { agent, called } = agentOf(input, Model);
      const result = await run(agent, input.prompt, { stream: true });
      await result.completed;
      return { text: result.finalOutput, called };
    },
  };
}

export const faces = { chat: faceOf(OpenAIChatCompletionsModel), responses: faceOf(OpenAIResponsesModel) };
