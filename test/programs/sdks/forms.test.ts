import { join } from 'node:path';
import { type PlayedClaude, promptAt, startPlayedClaude } from '../../support/agents/played-claude.js';
import { pdfOf } from '../../support/basics/pdf.js';
import { installSdks } from '../../support/clients/sdk-client.js';
import { type Door, doors, eventsIn, sentByDoor } from '../../support/doors/door-answers.js';
import { cells } from '../../support/doors/endings.js';
import { type TypedAnswer, typeFaults, withoutDifferences } from '../../support/doors/typed-answers.js';
import { type Service, startService } from '../../support/service/service.js';
import { differences } from './differences.js';
import { searchAnswers } from './search-answers.js';
import { anthropicBatches, backgroundResponses, modelsAndMore, openAiBatches } from './stored-answers.js';

const schema = { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] };

/** Types of the vendors' SDKs for the plain answer of each API, the events of its stream, and its failures. */
const types = {
  chat: ['OpenAI.ChatCompletion', 'OpenAI.ChatCompletionChunk', '{ error: OpenAI.ErrorObject }'],
  responses: ['OpenAI.Responses.Response', 'OpenAI.Responses.ResponseStreamEvent', '{ error: OpenAI.ErrorObject }'],
  messages: ['Anthropic.Message', 'Anthropic.RawMessageStreamEvent', 'Anthropic.ErrorResponse'],
  ollama: ['OllamaChat', 'OllamaChat', '{ error: string }'],
} as const satisfies Record<keyof typeof doors, readonly [string, string, string]>;

/** Fields of a request besides its prompt, by API. */
const structured: Readonly<Record<keyof typeof doors, object>> = {
  chat: { response_format: { type: 'json_schema', json_schema: { name: 'value', schema } } },
  responses: { text: { format: { type: 'json_schema', name: 'value', schema } } },
  messages: { output_config: { format: { type: 'json_schema', schema } } },
  ollama: { format: schema },
};
const thinking: typeof structured = {
  chat: { reasoning_effort: 'low' },
  responses: { reasoning: { effort: 'low', summary: 'auto' } },
  messages: { thinking: { type: 'enabled', budget_tokens: 2000 } },
  ollama: { think: true },
};
const custom = {
  chat: { tools: [{ type: 'custom', custom: { name: 'note' } }] },
  responses: { tools: [{ type: 'custom', name: 'note' }] },
};

const pdf = `data:application/pdf;base64,${pdfOf({ text: 'A page of Ada' }).toString('base64')}`;
const pdfName = { filename: 'ada.pdf', file_data: pdf };
const source = { type: 'base64', media_type: 'application/pdf', data: pdf.slice(pdf.indexOf(',') + 1) };
const withDocument = {
  chat: { messages: [{ role: 'user', content: [{ type: 'file', file: pdfName }] }] },
  responses: { input: [{ role: 'user', content: [{ type: 'input_file', ...pdfName }] }] },
  messages: { messages: [{ role: 'user', content: [{ type: 'document', source }] }] },
};

let played: PlayedClaude;
let demo: Service;
let modules: string;

beforeAll(async () => {
  modules = join((await installSdks()).clients, '..', 'node_modules');
  played = await startPlayedClaude(cells, { MODEL_API_LIVE_SESSIONS: '0' });
  demo = await startService({ env: { MODEL_API_FILES: 'memory' } });
}, 600_000);
afterAll(async () => {
  await played?.[Symbol.asyncDispose]();
  await demo?.stop();
});

/** Returns the answers of an API, with their types. */
async function answersOf(
  service: Service,
  name: keyof typeof doors,
  prompt: string,
  isStreamed: boolean,
  more: object = {},
): Promise<readonly TypedAnswer[]> {
  const door: Door = doors[name];
  const { status, text } = await sentByDoor(service.url, door, prompt, isStreamed, more);
  const [whole, event, failure] = types[name];
  const label = `${name}${isStreamed ? ' streamed' : ''}, ${prompt} ${JSON.stringify(more)}`;
  if (status !== 200) return [{ name: label, type: failure, value: JSON.parse(text) }];
  if (!isStreamed) return [{ name: label, type: whole, value: JSON.parse(text) }];
  return eventsIn(text).map((value) => {
    const isFailure = 'error' in value && name !== 'responses';
    const isPing = 'type' in value && value.type === 'ping';
    return { name: label, type: isPing ? "{ type: 'ping' }" : isFailure ? failure : event, value };
  });
}

const doorNames = Object.keys(doors) as (keyof typeof doors)[];

/** Messages with different forms. */
const distinct: Readonly<Record<string, readonly string[]>> = {
  end_turn: ['text', 'calls'],
  stop_sequence: ['text'],
  max_tokens: ['a call and a cut call'],
  refusal: ['text', 'nothing'],
};

async function allAnswers(): Promise<readonly TypedAnswer[]> {
  const asked: Promise<readonly TypedAnswer[]>[] = [];
  for (const name of doorNames) {
    for (const isStreamed of [false, true]) {
      for (const [place, { stopReason, content }] of cells.entries())
        if (distinct[stopReason]?.includes(content))
          asked.push(answersOf(played.service, name, promptAt(place), isStreamed));
      asked.push(answersOf(played.service, name, 'play nothing', isStreamed)); // the program fails
      const ask = (prompt: string, more: object = {}) =>
        asked.push(answersOf(demo, name, prompt, isStreamed, { model: 'eliza', ...more }));
      ask('Hello\nthink of Ada', thinking[name]);
      ask('call note {"who":"Ada"}\ncall note {}');
      ask('Who is it?', structured[name]);
      ask('Hello', { model: 'gpt-of-tomorrow' });
      ask('Hello', { tools: 5 });
      if (name === 'chat' || name === 'responses') ask('call note {"input":"Ada"}', custom[name]);
      if (name !== 'ollama') ask('What does it say?', withDocument[name]);
      if (name === 'chat') ask('Hello', { models: ['eliza', 'echo'] });
    }
  }
  const stored = [openAiBatches, anthropicBatches, backgroundResponses, modelsAndMore].map((record) => record(demo));
  return (await Promise.all([...asked, ...stored, searchAnswers()])).flat();
}

describe('The answers of all APIs', () => {
  it('match the types of the SDKs, except for the listed differences', async () => {
    const answers = withoutDifferences(await allAnswers(), differences);
    expect(answers.length).toBeGreaterThan(300);
    expect(await typeFaults(answers, modules)).toEqual([]);
  }, 120_000);
});
