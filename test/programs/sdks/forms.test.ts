import { join } from 'node:path';
import { type PlayedClaude, promptAt, startPlayedClaude } from '../../support/agents/played-claude.js';
import { installSdks } from '../../support/clients/sdk-client.js';
import { type Door, doors, eventsIn, sentByDoor } from '../../support/doors/door-answers.js';
import { cells } from '../../support/doors/endings.js';
import {
  added,
  type Difference,
  type Fields,
  leftOut,
  type TypedAnswer,
  typeFaults,
  withoutDifferences,
} from '../../support/doors/typed-answers.js';
import { type Service, startService } from '../../support/service/service.js';

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

const has = (name: string) => (value: object) => Object.hasOwn(value, name);
const isResponse = ({ object }: Fields) => object === 'response';
const isErrorEvent = (value: Fields) => value.type === 'error' && has('sequence_number')(value);
const ofUsage = { output_tokens_details: null, server_tool_use: null };
const ofMessageUsage = { cache_creation: null, inference_geo: null, service_tier: null, speed: null };
const ofLastLine = ['total_duration', 'load_duration', 'prompt_eval_count', 'prompt_eval_duration', 'eval_count'];

/** Differences between our answers and the types of the newest SDKs. */
const differences: readonly Difference[] = [
  added(
    'Open servers give thoughts so in a chat, and their clients read them',
    has('reasoning_content'),
    'reasoning_content',
  ),
  leftOut('The SDK itself adds it', isResponse, { output_text: '' }),
  added('The examples of the API have it', isResponse, 'store'),
  added('The examples of the API have it', ({ type }) => type === 'custom_tool_call', 'status'),
  added('Open Responses has them', isResponse, 'frequency_penalty', 'presence_penalty'),
  added(
    'Open Responses has null',
    (value) => value.type === 'json_schema' && value.description === null,
    'description',
  ),
  added('The examples of the API have null', (value) => isResponse(value) && value.usage === null, 'usage'),
  added('Older SDKs find the error one level down', isErrorEvent, 'error'),
  leftOut('Newer SDKs find the error of the event `response.failed`', isErrorEvent, {
    code: null,
    message: '',
    param: null,
  }),
  {
    why: 'The service has failures that the API has not, with codes of their own',
    change: ({ status, error }) =>
      status === 'failed' && Object.assign(error as object, { code: 'server_error' }) !== null,
  },
  added('Earlier types have it', ({ type }) => type === 'response.function_call_arguments.done', 'name'),
  leftOut('The API leaves it out, and AI SDK 5 and 6 refuse null', isTextBlock, { citations: null }),
  leftOut('The model CLI does not report it', has('cache_read_input_tokens'), { ...ofUsage, ...ofMessageUsage }),
  {
    why: 'The usage at the end of a stream has fewer fields',
    change: ({ type, usage }) =>
      type === 'message_delta' && Object.keys(ofMessageUsage).every((name) => delete (usage as Fields)[name]),
  },
  leftOut('It is of the API alone', (value) => value.type === 'message' && has('container')(value), {
    diagnostics: null,
  }),
  leftOut('The types are those of the last line', ({ done }) => done === false, {
    ...Object.fromEntries(ofLastLine.map((name) => [name, 0])),
    ...{ eval_duration: 0, done_reason: '' },
  }),
  added('Ollama has it, and its types lack it', (value) => has('arguments')(value) && has('name')(value), 'index'),
  added('Ollama has it, and its types lack it', isOllamaCall, 'id'),
];

function isTextBlock({ type, text, annotations }: Fields): boolean {
  return type === 'text' && typeof text === 'string' && annotations === undefined;
}

function isOllamaCall(value: Fields): boolean {
  const { arguments: input } = Object(value.function) as Fields;
  return has('id')(value) && typeof input === 'object';
}

let played: PlayedClaude;
let demo: Service;
let modules: string;

beforeAll(async () => {
  modules = join((await installSdks()).clients, '..', 'node_modules');
  played = await startPlayedClaude(cells, { MODEL_API_LIVE_SESSIONS: '0' });
  demo = await startService();
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
    }
  }
  return (await Promise.all(asked)).flat();
}

describe('The answers of all APIs', () => {
  it('match the types of the SDKs, except for the listed differences', async () => {
    const answers = withoutDifferences(await allAnswers(), differences);
    expect(answers.length).toBeGreaterThan(300);
    expect(await typeFaults(answers, modules)).toEqual([]);
  });
});
