import { TokenFactors } from '../../../../src/features/anthropic/token-factors.js';
import { LearnedSizes } from '../../../../src/primary/cli/model-sizes.js';
import type { ClientText } from '../../../../src/shared/client.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const rules = { thinking: null, acceptsDemand: true, tokenFactor: 1.3 };
const claude = { adapterModel: 'opus', cli: { name: 'claude', program: { extras: { rulesOf: () => rules } } } };

/** A tokenizer that finds one token in each character. */
function open() {
  const clock = new FakeClock();
  const sizes = new LearnedSizes(null, new LogBook());
  let counts = 0;
  const countTokens = async (texts: readonly string[]) => {
    counts++;
    return texts.join('').length;
  };
  const factors = new TokenFactors({ tokens: { countTokens }, sizes, clock });
  /** The model reports this number of tokens for each one that is counted. */
  const observe = (factor: number, client: ClientText = 'key ada', more: Partial<JobRequest> = {}, length = 10_000) =>
    factors.observeTokens(
      claude,
      jobRequest({ client, text: 'x'.repeat(length), ...more }),
      Math.round(factor * length),
    );
  return { clock, factors, observe, counts: () => counts };
}

describe('The token factor of a model', () => {
  it('is that of its family at first, and 1 for other programs', () => {
    const { factors } = open();
    const other = { adapterModel: null, cli: { name: 'codex', program: { extras: {} } } };
    expect([factors.factorOf(claude), factors.factorOf(other)]).toEqual([1.3, 1]);
  });

  it('is learnt from the usage of answers', async () => {
    const { factors, observe } = open();
    await observe(1.45);
    expect(factors.factorOf(claude)).toBeCloseTo(1.45);
    expect(factors.factorOf({ ...claude, adapterModel: 'haiku' })).toBe(1.3);
  });

  it('is changed by a quarter at most by the observations of one client', async () => {
    const { clock, factors, observe } = open();
    for (let n = 0; n < 9; n++) {
      await observe(9);
      await clock.advance(60_000);
    }
    expect(factors.factorOf(claude)).toBeCloseTo(1.3 * 1.25);
  });

  it('is the median of the clients', async () => {
    const { factors, observe } = open();
    await observe(9);
    await observe(1.5, 'key bob');
    await observe(1.6, 'key eve');
    expect(factors.factorOf(claude)).toBeCloseTo(1.6);
  });

  it('is observed once a minute for each client', async () => {
    const { clock, observe, counts } = open();
    await observe(1.4);
    await observe(1.4);
    expect(counts()).toBe(1);
    await clock.advance(60_000);
    await observe(1.4);
    expect(counts()).toBe(2);
  });

  it.each<[string, Partial<JobRequest>, number]>([
    ['is short', {}, 1000],
    ['has a schema, for which the program asks the model twice', { schema: '{}' }, 10_000],
    ['has an image', { images: [{ mediaType: 'image/png', data: 'eA==', at: 0 }] }, 10_000],
    ['continues a conversation', { conversationId: 'c' }, 10_000],
  ])('is not observed if the prompt %s', async (_name, more, length) => {
    const { observe, counts } = open();
    await observe(1.4, 'key ada', more, length);
    expect(counts()).toBe(0);
  });
});
