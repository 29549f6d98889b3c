import { type PlayedClaude, promptAt, startPlayedClaude } from '../../support/agents/played-claude.js';
import { until } from '../../support/basics/until.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';
import { askDoor, type DoorAnswer } from '../../support/doors/door-answers.js';
import { answerFor, type Cell, cells, manners, nameOf, unknownCells } from '../../support/doors/endings.js';

const concurrent = 12;
const all = [...cells, ...unknownCells];
const asked = all.flatMap((cell, place) =>
  manners.map((manner) => ({ cell, manner, prompt: promptAt(place), name: nameOf(cell, manner) })),
);

let played: PlayedClaude;

beforeAll(async () => {
  const limits = { MODEL_API_MAX_CONCURRENT: `${concurrent}`, MODEL_API_LIVE_SESSIONS: '24' };
  played = await startPlayedClaude(all, limits);
});
afterAll(() => played[Symbol.asyncDispose]());

describe('A message of the model', () => {
  it('ends its answer as the table defines, for each stop reason, content and API, plain and streamed', async () => {
    const faults: object[] = [];
    const left = [...asked];
    const work = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { cell, manner, prompt, name } = next;
        const answer = await askDoor(played.service.url, manner.door, `${prompt} (${name})`, manner.isStreamed);
        const expected = answerFor(cell, manner);
        if (!isSame(answer, expected)) faults.push({ name, answer, expected });
      }
    };
    await Promise.all(Array.from({ length: concurrent }, work));
    expect(faults).toEqual([]);
    await until(async () => slotsUsed((await played.service.get('/status')).body) === 0, 'all slots to be free');
  }, 60_000);

  it('keeps the process for the results of its calls, unless a call is cut off or the API ended the answer', async () => {
    const called = all.flatMap((cell, place) =>
      cell.content === 'calls' || cell.content === 'a call and a cut call' ? [{ cell, prompt: promptAt(place) }] : [],
    );
    const sessions = await Promise.all(
      called.map(async ({ prompt }) => {
        const client = new ToolClient(played.service, 'any', { model: 'claude-sonnet-5', tools: [note] });
        await client.say(prompt);
        const { text, session } = await client.answer(() => 'ok');
        return { text, session };
      }),
    );
    const isLive = ({ content, expected }: Cell) => content === 'calls' && expected === 'calls';
    const expected = called.map(({ cell }) => ({ text: 'Noted.', session: isLive(cell) ? 'live' : 'replay' }));
    expect(sessions).toEqual(expected);
  });
});

function isSame(answer: DoorAnswer, expected: DoorAnswer): boolean {
  const sorted = (value: object) => JSON.stringify(Object.entries(value).toSorted());
  return sorted(answer) === sorted(expected);
}

function slotsUsed(status: Readonly<Record<string, unknown>>): number {
  return (status.slots as { readonly running: readonly unknown[] }).running.length;
}
