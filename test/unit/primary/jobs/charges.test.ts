import { type Turn, type Usage, unknownUsage } from '../../../../src/primary/cli/contract/adapter.js';
import type { TurnUse } from '../../../../src/primary/cli/process/open-turn.js';
import { Charges } from '../../../../src/primary/jobs/charges.js';

const priced = { name: 'claude', adapter: { reportsCost: true } };
const free = { name: 'agent', adapter: {} };

function turnOf(text: string, model: string | null = 'large'): Turn {
  return { text, history: [], model, system: null, schema: null, effort: null };
}

function use(usage: Partial<Usage>, more: Partial<TurnUse> = {}): TurnUse {
  return { usage: { ...unknownUsage, ...usage }, isCut: false, outputBytes: 0, hasCalls: false, ...more };
}

const whole = use({ inputTokens: 90, outputTokens: 10, costUsd: 0.002 });

describe('The charge of a turn', () => {
  it('is what the model CLI reports', () => {
    const charge = new Charges().chargeTurn({ process: {}, cli: priced, turn: turnOf('Hi'), use: whole });
    expect(charge).toEqual({
      inputTokens: 90,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 10,
      searches: 0,
      costUsd: 0.002,
    });
  });

  it.each([
    { inputTokens: 90, read: 80, written: 6, cachedTokens: 80, cacheWriteTokens: 6 },
    { inputTokens: 90, read: null, written: 6, cachedTokens: 0, cacheWriteTokens: 6 },
    { inputTokens: 90, read: 80, written: 30, cachedTokens: 80, cacheWriteTokens: 10 },
    { inputTokens: 50, read: 80, written: 6, cachedTokens: 50, cacheWriteTokens: 0 },
  ])('contains the tokens of the cache among its input tokens: %j', ({ inputTokens, read, written, ...cache }) => {
    const reported = use({ inputTokens, cacheReadTokens: read, cacheWriteTokens: written, outputTokens: 1 });
    const charge = new Charges().chargeTurn({ process: {}, cli: free, turn: turnOf('Hi'), use: reported });
    expect(charge).toMatchObject({ inputTokens, ...cache });
  });

  it('is estimated from the texts and images if the model CLI reports nothing', () => {
    const images = [{ mediaType: 'image/png', data: 'x'.repeat(10_000), at: 0 }] as const;
    const history = [{ role: 'user', text: 'x'.repeat(80) }] as const;
    const turn = { ...turnOf('x'.repeat(40)), images, history };
    const charge = new Charges().chargeTurn({ process: {}, cli: free, turn, use: use({}, { outputBytes: 20 }) });
    expect(charge).toEqual({
      inputTokens: 1630,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 5,
      searches: 0,
      costUsd: null,
    });
  });

  it('counts at least the tokens of the written text if the turn was cut before its last message was reported', () => {
    const cut = use({ inputTokens: 50, outputTokens: 3 }, { isCut: true, outputBytes: 400 });
    const charge = new Charges().chargeTurn({ process: {}, cli: free, turn: turnOf('Hi'), use: cut });
    expect(charge).toEqual({
      inputTokens: 50,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 100,
      searches: 0,
      costUsd: null,
    });
  });

  it('uses the last known price of its model if no cost is reported, then that of another model, then a default', () => {
    const charges = new Charges();
    const cut = use({ inputTokens: 400, outputTokens: 100 }, { isCut: true });
    const costOf = (model: string) =>
      charges.chargeTurn({ process: {}, cli: priced, turn: turnOf('Hi', model), use: cut }).costUsd;
    expect(costOf('large')).toBeCloseTo(0.005);
    charges.chargeTurn({ process: {}, cli: priced, turn: turnOf('Hi', 'large'), use: whole });
    charges.chargeTurn({
      ...{ process: {}, cli: priced, turn: turnOf('Hi', 'small') },
      use: use({ inputTokens: 100, outputTokens: 100, costUsd: 0.0002 }),
    });
    expect([costOf('large'), costOf('small'), costOf('unknown')]).toEqual([0.01, 0.0005, 0.0005]);
  });

  it('learns no price from a turn with web searches, whose price is not one of tokens', () => {
    const charges = new Charges();
    const charge = (turn: Turn, used: TurnUse) => charges.chargeTurn({ process: {}, cli: priced, turn, use: used });
    charge(turnOf('Hi'), whole);
    charge({ ...turnOf('Hi'), search: { maxUses: 8 } }, use({ inputTokens: 1, outputTokens: 1, costUsd: 9 }));
    const { costUsd } = charge(turnOf('x'.repeat(400)), use({}, { isCut: true }));
    expect(costUsd).toBeCloseTo(100 * (0.002 / 100));
  });

  it('adds up to the last report over all rounds, or to the estimate if the results of calls never arrive', () => {
    const charges = new Charges();
    const process = {};
    const learned = { process: {}, cli: priced, turn: turnOf('Hi'), use: whole };
    charges.chargeTurn(learned);
    const round = { process, cli: priced, turn: turnOf('Hi') };
    const calls = use({ inputTokens: 90, outputTokens: 10 }, { hasCalls: true });
    expect(charges.chargeTurn({ ...round, use: calls }).costUsd).toBeCloseTo(0.002);
    expect(charges.chargeTurn({ ...round, use: calls }).costUsd).toBeCloseTo(0.002);
    const last = use({ inputTokens: 90, outputTokens: 10, costUsd: 0.007 });
    expect(charges.chargeTurn({ ...round, use: last }).costUsd).toBeCloseTo(0.003);
    expect(charges.chargeTurn({ ...round, use: whole }).costUsd).toBe(0.002);
  });

  it('counts the tokens that an agent reports at the end of all rounds only once', () => {
    const charges = new Charges();
    const round = { process: {}, cli: free, turn: turnOf('x'.repeat(40)) };
    const calls = use({}, { hasCalls: true, outputBytes: 40 });
    expect(charges.chargeTurn({ ...round, use: calls })).toMatchObject({ inputTokens: 10, outputTokens: 10 });
    const last = use({ inputTokens: 500, outputTokens: 30 });
    expect(charges.chargeTurn({ ...round, use: last })).toMatchObject({ inputTokens: 490, outputTokens: 20 });
  });
});
