import { demandedTurns } from '../../../../src/features/doors/demanded-calls.js';
import {
  type AnswerEvent,
  plainLaunch,
  type ToolOffer,
  type Turn,
  unknownUsage,
} from '../../../../src/primary/cli/contract/adapter.js';
import type { RepairedEnd, RunTurn } from '../../../../src/primary/jobs/answer-turns.js';
import { textDelta } from '../../../support/jobs/answer-events.js';

const tool = { name: 'note', description: '', schema: '{}' };
const offer: ToolOffer = { tools: [tool, { ...tool, name: 'other' }], choice: 'required', isParallel: true };
const named: ToolOffer = { ...offer, choice: { name: 'note' } };
const demand = '(You must answer this message with a call of at least one tool, and with no text.)';
const turn: Turn = { ...plainLaunch(null), text: 'Hi', history: [], offer };

interface Said {
  readonly text?: string;
  readonly calls?: readonly string[];
  readonly more?: Partial<RepairedEnd>;
}

/** Runs turns of a model that says these answers, and returns what the client and the model get. */
async function run(asked: Turn, wanted: ToolOffer, ...answers: readonly Said[]) {
  const turns: Turn[] = [];
  const sent: string[] = [];
  let processes = 0;
  const answer: RunTurn = async (each, target) => {
    const { text = '', calls = [], more } = answers[turns.push(each) - 1] ?? {};
    if (text !== '') target.write(textDelta(text));
    const made = calls.map((name, at) => ({ id: `call_${at}`, name, input: '{}' }));
    for (const { id, name } of made) target.write({ type: 'call-start', id, name });
    const usage = { ...unknownUsage, outputTokens: 1 };
    const ended = { type: 'turn-end', text: null, model: null, usage, ...more } as const;
    return made.length === 0 ? ended : { ...ended, calls: made };
  };
  const acquireAnother = async () => void processes++;
  const target = {
    ...{ hasEnough: () => false, flush: () => {} },
    write: (event: AnswerEvent) => {
      if (event.type === 'text-delta' && event.text !== '') sent.push(event.text);
      if (event.type === 'call-start') sent.push(`call ${event.name}`);
    },
  };
  const ended = demandedTurns({ processes: { acquireAnother } }, answer, wanted)(asked, target);
  const end = await ended.catch((error: Error) => error.message);
  return { end, turns, sent, processes };
}

describe('A demanded call of a model that cannot be forced', () => {
  it('is asked for at the end of the message, and sent when it is made', async () => {
    const { turns, sent, processes } = await run(turn, offer, { calls: ['other'] });
    expect(turns).toMatchObject([{ text: `Hi\n\n${demand}`, history: [] }]);
    expect([sent, processes]).toEqual([['call other'], 0]);
  });

  it('is asked for in the last result, while the program waits for results alone', async () => {
    const results = [{ id: 'call_a', text: 'Noted.', isError: false }];
    const { turns } = await run({ ...turn, text: '', results }, offer, { calls: ['note'] });
    expect(turns).toMatchObject([{ text: '', results: [{ text: `Noted.\n\n${demand}` }] }]);
  });

  it('leaves the breakpoint of the client where it was', async () => {
    const cache = { ttl: '5m', restLength: 1 } as const;
    const { turns } = await run({ ...turn, cache }, offer, { calls: ['note'] });
    expect(turns[0]?.cache).toEqual({ ttl: '5m', restLength: 1 + `\n\n${demand}`.length });
  });

  it('is asked for once more after a text, which the client does not get', async () => {
    const { end, turns, sent, processes } = await run(turn, offer, { text: 'Well.' }, { calls: ['note'] });
    expect(turns[1]).toMatchObject({
      text: demand,
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: 'Well.' },
      ],
    });
    expect([sent, processes]).toEqual([['call note'], 1]);
    expect(end).toMatchObject({ isRepaired: true, usage: { outputTokens: 2 } });
  });

  it('is repeated as a whole after an empty answer, which no history can contain', async () => {
    const { turns } = await run(turn, offer, {}, { calls: ['note'] });
    expect(turns[1]).toEqual(turns[0]);
  });

  it('of one tool is asked for once more after the call of another', async () => {
    const { turns, sent } = await run(turn, named, { calls: ['other'] }, { calls: ['note'] });
    expect(turns[1]).toMatchObject({
      history: [{ role: 'user' }, { role: 'assistant', calls: [{ name: 'other' }] }],
      results: [{ id: 'call_0', isError: true }],
    });
    expect(turns[1]?.results?.[0]?.text).toContain('a call of the tool note');
    expect(sent).toEqual(['call note']);
  });

  it('is an error if the second answer has none, either', async () => {
    const { end, sent } = await run(turn, offer, { text: 'Well.' }, { text: 'No.' });
    expect(end).toBe('the model made no valid tool call, which the request demands: it has called no tool');
    expect(sent).toEqual([]);
  });

  it('is not missing from an answer that was cut', async () => {
    const { end, sent, turns } = await run(turn, offer, { text: 'We', more: { isCutShort: true } });
    expect(end).toMatchObject({ isCutShort: true });
    expect([sent, turns.length]).toEqual([['We'], 1]);
  });
});
