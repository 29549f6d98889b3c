import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { type MessagesApi, saysAndCalls, startMessagesApi, thinking } from '../../support/agents/messages-api-stub.js';
import {
  askGrid,
  type GridAnswer,
  gridBehaviour,
  gridCases,
  gridDoors,
  gridModels,
  isPossible,
} from '../../support/agents/model-grid.js';
import type { Service } from '../../support/service/service.js';

const concurrent = 3;

/** APIs for each model and case; MODEL_GRID=full tries all of them. */
const doorsPerCase = process.env.MODEL_GRID === 'full' ? gridDoors.length : 1;

/** Each model with each case, at APIs that change from one to the next, so that each model and case meets all APIs. */
const cells = gridModels.flatMap((model, modelIndex) =>
  gridCases.flatMap((each, caseIndex) => {
    const doors = gridDoors.filter((door) => isPossible(door, each));
    const first = (modelIndex + caseIndex) * doorsPerCase;
    return Array.from({ length: Math.min(doorsPerCase, doors.length) }, (_, index) => {
      const door = doors[(first + index) % doors.length] as (typeof doors)[number];
      return { name: `${each.name} at ${door.path} for ${model}`, model, door, each };
    });
  }),
);

let api: MessagesApi;
let service: Service;
const answers = new Map<string, GridAnswer>();

beforeAll(() => installClaude(), 600_000);
beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = gridBehaviour;
  const env = { MODEL_API_MAX_CONCURRENT: `${concurrent}`, MODEL_API_STANDBY: '2' };
  service = await startWithClaude(api, { env });
  const left = [...cells];
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name, model, door, each } = next;
      answers.set(name, await askGrid(service, door, model, each));
    }
  };
  await Promise.all(Array.from({ length: concurrent }, work));
}, 600_000); // a minute on an idle machine; some six with MODEL_GRID=full
afterAll(async () => {
  await service.stop();
  await api.close();
});

describe('The requests of the relay', () => {
  it('are accepted by the API of every model', () => {
    expect(api.faults).toEqual([]);
  });

  it.each(gridModels)('are answered with each option for %s', (model) => {
    const failed = cells
      .filter((cell) => cell.model === model)
      .flatMap(({ name, each: { isRound, options } }) => {
        const { statuses, hasCall } = answers.get(name) ?? { statuses: [], hasCall: false };
        const isAnswered = statuses.length === (isRound ? 2 : 1) && statuses.every((status) => status === 200);
        const isCalled = hasCall || (!isRound && options.choice === undefined);
        return isAnswered && isCalled ? [] : [{ name, statuses, hasCall }];
      });
    expect(failed).toEqual([]);
  });
});

describe('The words between calls, which some models write as thoughts,', () => {
  it.each([
    ['claude-opus-5-5', {}, 'updates', 'Let me think.'],
    ['claude-opus-5-5', { reasoning_effort: 'none' }, 'updates', undefined],
    ['claude-opus-5-5', { reasoning_effort: 'low' }, 'summarized', 'Let me think.'],
    ['claude-haiku-4-5', {}, undefined, undefined],
  ])('reach a chat completion with tools: %s %j', async (model, more, display, words) => {
    const parameters = { type: 'object', properties: {} };
    api.behave = () => thinking(saysAndCalls('', { name: 'note', input: {} }));
    const { body } = await service.post('/v1/chat/completions', {
      ...{ model, messages: [{ role: 'user', content: 'Note it.' }], ...more },
      tools: [{ type: 'function', function: { name: 'note', parameters } }],
    });
    const [{ message }] = body.choices as [{ message: { reasoning_content?: string; tool_calls: object[] } }];
    expect([message.reasoning_content, message.tool_calls.length]).toEqual([words, 1]);
    expect(api.requests.at(-1)?.body.thinking).toMatchObject({ ...(display && { display }) });
  });
});
