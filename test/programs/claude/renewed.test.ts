import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  type Behaviour,
  type MessagesApi,
  type MessagesRequest,
  refuses,
  says,
  saysAndCalls,
  saysAndGives,
  saysSlowly,
  stalls,
  startMessagesApi,
  thinking,
} from '../../support/agents/messages-api-stub.js';
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
import { until } from '../../support/basics/until.js';
import { type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import type { Service } from '../../support/service/service.js';

/** Number of questions. RENEWED_QUESTIONS=2000 asks more. */
const count = Number(process.env.RENEWED_QUESTIONS ?? 58);
/** Processes that wait for results in vain would otherwise take all places of sessions. */
const brief = { MODEL_API_SESSION_IDLE_SECONDS: '10' };
const words = Array.from({ length: 100 }, (_, at) => `${at} `);

const questions = new MixedQuestions([
  ...(['plain', 'plain', 'model', 'image', 'plain', 'effort', 'document', 'left', 'plain', 'system'] as const),
  ...(['refused', 'plain', 'model', 'thoughts', 'chat', 'killed', 'effort', 'image and document'] as const),
  ...(['completion', 'late', 'plain', 'tool', 'schema', 'system', 'message', 'dying', 'abandoned tool'] as const),
  ...(['broken', 'plain'] as const),
]);

let api: MessagesApi;
let keys: NamedKeys;
let service: Service;

beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = (request) => {
    const index = indexIn(request.body);
    return behaviours[questions.kindOf(index)]?.(request, index) ?? answerTo(index);
  };
  keys = await writeNamedKeys(holders);
});
afterEach(() => service.stop());
afterAll(async () => {
  await api.close();
  await keys[Symbol.asyncDispose]();
});

async function start(reuse: 'on' | 'off', env: Readonly<Record<string, string>> = {}): Promise<void> {
  const limits = { MODEL_API_LIVE_SESSIONS: '16', MODEL_API_MAX_CONCURRENT: '4', MODEL_API_TIMEOUT: '6', ...brief };
  service = await startWithClaude(api, { env: { ...keys.env, ...limits, MODEL_API_REUSE: reuse, ...env } });
}

function answerTo(index: number) {
  return says('The answer to ', `${canaryOf(index)}, as asked`, '.');
}

function notes(index: number): Behaviour {
  const call = { name: 'note', input: { who: canaryOf(index) }, id: `toolu_${canaryOf(index)}` };
  return saysAndCalls('', call);
}

/** Answers of the API that are not plain ones. */
const behaviours: Partial<Record<QuestionKind, (request: MessagesRequest, index: number) => Behaviour>> = {
  thoughts: (_, index) => thinking(answerTo(index)),
  schema: (_, index) => saysAndGives('', { [holderOf(index)]: canaryOf(index) }),
  tool: ({ body }, index) => (JSON.stringify(body.messages).includes('"tool_result"') ? answerTo(index) : notes(index)),
  'abandoned tool': (_, index) => notes(index),
  refused: () => refuses(400, 'invalid_request_error', 'Refused.'),
  broken: () => refuses(500, 'api_error', 'Broken.'),
  left: (_, index) => saysSlowly(20, `${canaryOf(index)} `, ...words.slice(0, 20)),
  late: () => saysSlowly(100, ...words),
  killed: ({ clientPort }) => {
    void killSender(service, clientPort, 0);
    return stalls;
  },
  dying: ({ clientPort }, index) => {
    void killSender(service, clientPort, (index * 7) % 40);
    return answerTo(index);
  },
};

/** Returns the requests since then. The CLI adds a digest of the prompt to its version. */
function requestsSince(start: number): readonly ComparedRequest[] {
  return api.requests.slice(start).map(({ body }) => {
    const { metadata } = body as { readonly metadata?: { readonly user_id?: string } };
    const shape = JSON.stringify({ ...body, metadata: null }).replace(/(cc_version=\d+\.\d+\.\d+)\.\w+/, '$1');
    return { body, shape, session: String(JSON.parse(metadata?.user_id ?? '{}').session_id) };
  });
}

it(`${count} questions of eight clients reach the API like those of fresh processes, and have no other question in them`, async () => {
  await start('off');
  await questions.learn(service, () => requestsSince(0));
  await service.stop();
  const before = api.requests.length;
  await start('on');
  expect(await questions.askFirst(count, service)).toEqual([]);
  expect(questions.faultsIn(requestsSince(before))).toEqual([]);
  expect(await renewedQuestions(service, 'claude')).toBeGreaterThan(count / 4);
  await until(async () => (await service.jobProcesses()).length <= 17, 'the processes to be as few as sessions');
}, 2_400_000);

it.each(['completion', 'message'] as const)(
  'the process of a question that its client has left serves the next one: %s',
  async (kind) => {
    await start('off');
    await questions.learn(service, () => requestsSince(0), [kind]);
    await service.stop();
    const before = api.requests.length;
    await start('on', { MODEL_API_STANDBY: '0' });
    const ask = (at: number) => questions.ask(service, questions.nth(kind, at));
    // Two at once are side requests of each other, so that no turn is expected after them.
    await Promise.all([ask(0), ask(1)]);
    await ask(2);
    expect(await renewedQuestions(service, 'claude')).toBe(1);
    expect(questions.faultsIn(requestsSince(before))).toEqual([]);
  },
  120_000,
);
