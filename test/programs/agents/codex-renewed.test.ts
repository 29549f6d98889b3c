import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  type ComparedRequest,
  canaryOf,
  holderOf,
  holders,
  indexIn,
  killSender,
  MixedQuestions,
  type QuestionKind,
  renewedQuestions,
} from '../../support/agents/mixed-questions.js';
import {
  calls,
  type ResponsesApi,
  type ResponsesBehaviour,
  type ResponsesRequest,
  reasons,
  responds,
  respondsSlowly,
  responseRefusals,
  responseStalls,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import type { Service } from '../../support/service/service.js';

/** Number of questions. RENEWED_QUESTIONS=2000 asks more. */
const count = Number(process.env.RENEWED_QUESTIONS ?? 46);
/** Processes that wait for results in vain would otherwise take all places of sessions. */
const brief = { MODEL_API_SESSION_IDLE_SECONDS: '10' };
const words = Array.from({ length: 100 }, (_, at) => `${at} `);
const uuid = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

const questions = new MixedQuestions([
  ...(['plain', 'system', 'image', 'plain', 'effort', 'document', 'left', 'plain', 'thoughts', 'chat'] as const),
  ...(['refused', 'plain', 'schema', 'killed', 'effort', 'completion', 'system', 'late', 'tool'] as const),
  ...(['plain', 'message', 'dying', 'abandoned tool'] as const),
]);

let api: ResponsesApi;
let keys: NamedKeys;
let service: Service;

beforeAll(async () => {
  await installCodex();
  api = await startResponsesApi();
  api.behave = (request) => {
    const index = indexIn(request.body);
    return behaviours[questions.kindOf(index)]?.(request, index) ?? answerTo(index);
  };
  keys = await writeNamedKeys(holders);
}, 600_000);
afterEach(() => service.stop());
afterAll(async () => {
  await api.close();
  await keys[Symbol.asyncDispose]();
});

async function start(reuse: 'on' | 'off'): Promise<void> {
  const limits = { MODEL_API_LIVE_SESSIONS: '16', MODEL_API_MAX_CONCURRENT: '4', MODEL_API_TIMEOUT: '6', ...brief };
  service = await startWithCodex(api, { env: { ...keys.env, ...limits, MODEL_API_REUSE: reuse } });
}

function answerTo(index: number): ResponsesBehaviour {
  return responds('The answer to ', `${canaryOf(index)}, as asked`, '.');
}

function notes(index: number): ResponsesBehaviour {
  return calls({ id: `call_${canaryOf(index)}`, name: 'note', input: JSON.stringify({ who: canaryOf(index) }) });
}

/** Answers of the API that are not plain ones. */
const behaviours: Partial<Record<QuestionKind, (request: ResponsesRequest, index: number) => ResponsesBehaviour>> = {
  thoughts: (_, index) => reasons('The answer to ', canaryOf(index)),
  schema: (_, index) => responds(JSON.stringify({ [holderOf(index)]: canaryOf(index) })),
  tool: ({ body }, index) => (body.input.at(-1)?.type === 'function_call_output' ? answerTo(index) : notes(index)),
  'abandoned tool': (_, index) => notes(index),
  refused: () => responseRefusals.malformed,
  left: (_, index) => respondsSlowly(20, `${canaryOf(index)} `, ...words.slice(0, 20)),
  late: () => respondsSlowly(100, ...words),
  killed: ({ clientPort }) => {
    void killSender(service, clientPort, 0);
    return responseStalls;
  },
  dying: ({ clientPort }, index) => {
    void killSender(service, clientPort, (index * 7) % 40);
    return answerTo(index);
  },
};

/** Returns the requests since then. Each thread has ids of its own, and the metadata have times and no fixed order. */
function requestsSince(start: number): readonly ComparedRequest[] {
  return api.requests.slice(start).map(({ body }) => {
    const { prompt_cache_key: session } = body as { readonly prompt_cache_key?: string };
    return {
      body,
      shape: JSON.stringify({ ...body, client_metadata: null }).replaceAll(uuid, 'uuid'),
      session: String(session),
    };
  });
}

it(`${count} questions of eight clients reach the API of codex like those of fresh processes, and have no other question in them`, async () => {
  await start('off');
  await questions.learn(service, () => requestsSince(0));
  await service.stop();
  const before = api.requests.length;
  await start('on');
  expect(await questions.askFirst(count, service)).toEqual([]);
  expect(questions.faultsIn(requestsSince(before))).toEqual([]);
  expect(await renewedQuestions(service, 'codex')).toBeGreaterThan(count / 2);
}, 2_400_000);

it('The codex process of a replaced message goes on with the new version, whose request is that of a fresh process', async () => {
  await start('off');
  await questions.learn(service, () => requestsSince(0), ['chat']);
  await service.stop();
  const before = api.requests.length;
  await start('on');
  await questions.ask(service, questions.nth('chat', 0));
  expect(await renewedQuestions(service, 'codex', 'rewound')).toBe(1);
  expect(questions.faultsIn(requestsSince(before))).toEqual([]);
}, 120_000);
