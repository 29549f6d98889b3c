import type { SharedConversations } from '../../../src/features/redis/redis-conversations.js';
import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import { unknownUsage } from '../../../src/primary/cli/contract/adapter.js';
import type { ConversationJournal } from '../../../src/primary/store/contract/conversations.js';
import { storedFigures } from '../../../src/primary/store/contract/stored-text.js';
import { delay, systemClock } from '../../../src/shared/clock.js';
import type { TranscriptPart } from '../../../src/shared/ipc/protocol.js';
import type { Usage } from '../../../src/shared/job.js';
import { KeptRun, usualLimits } from './kept.js';

/** Place of a store under test, which successive services can open. */
export interface StorePlaceForTests extends AsyncDisposable {
  open(limits?: typeof usualLimits): Promise<FullStore>;
}

const image = { mediaType: 'image/png', data: Buffer.from('no picture').toString('base64'), at: 1 } as const;
/** Text with hard characters. */
const odd = "ü🚀\u0000 \u2028 “quoted” \\ '); DROP TABLE turns; --";

const used: Usage = { ...unknownUsage, inputTokens: 5, outputTokens: 1, costUsd: 0.25, cacheReadTokens: 3 };

/** Figures of each message; null if absent. */
function figuresIn(said: readonly TranscriptPart[]) {
  return said.flatMap((part) => (part.type === 'message' ? [part.figures ?? null] : []));
}

/** Journal that several hosts share. */
type SharedJournal = ConversationJournal & SharedConversations;

/** Successive services on one store. */
class Services {
  readonly #place: StorePlaceForTests;
  #store: FullStore | null = null;

  constructor(place: StorePlaceForTests) {
    this.#place = place;
  }

  /** Starts the next service, after ending the previous one. */
  async next(limits: Partial<typeof usualLimits> = {}): Promise<KeptRun> {
    await this.end();
    this.#store = await this.#place.open({ ...usualLimits, ...limits });
    const { conversations } = this.#store;
    const run = new KeptRun(conversations, limits, 'enter' in conversations ? (conversations as SharedJournal) : null);
    await run.restore();
    return run;
  }

  async end(): Promise<void> {
    await this.#store?.close();
  }
}

/** Returns all conversations, the most recently active first. Numbers of activity are new in each service. */
async function everything(run: KeptRun) {
  const all = [...(await run.all('key alice')), ...(await run.all('key bob'))];
  return all.map(({ activity: _, ...conversation }) => conversation);
}

/** Tests the contract of all stores. `isDurable`: conversations survive a restart. */
export function describeStore(name: string, isDurable: boolean, place: () => Promise<StorePlaceForTests>): void {
  async function withServices(test: (services: Services) => Promise<void>): Promise<void> {
    await using at = await place();
    const services = new Services(at);
    try {
      await test(services);
    } finally {
      await services.end();
    }
  }

  /** Expects the same data in the next service if the store is durable, else no data. */
  async function expectKept(services: Services, before: KeptRun): Promise<void> {
    const known = await everything(before);
    const { bytes, tokens, conversations } = before.store.counts;
    const after = await services.next();
    expect(await everything(after)).toEqual(isDurable ? known : []);
    const counts = { ...after.store.counts, created: 0 };
    expect(counts).toEqual(
      isDurable ? { bytes, tokens, conversations, created: 0 } : { bytes: 0, tokens: 0, conversations: 0, created: 0 },
    );
  }

  /** Tests that the next service has the data of a run, or of the run that the test returns. */
  function keeps(
    title: string,
    test: (run: KeptRun, services: Services) => Promise<unknown>,
    limits: Partial<typeof usualLimits> = {},
  ): void {
    it(title, () =>
      withServices(async (services) => {
        const run = await services.next(limits);
        const last = await test(run, services);
        await expectKept(services, last instanceof KeptRun ? last : run);
      }),
    );
  }

  describe(`A store (${name})`, () => {
    keeps('keeps turns with texts, system text, images, tokens and times', async (run) => {
      const id = await run.chat(null, odd, 'Hello', { system: `Be ${odd}`, images: [image] });
      await run.chat(id, 'x'.repeat(10_000), odd.repeat(100), { images: [image, image] });
      await run.chat(null, '', '');
    });

    keeps('keeps the model and the usage of each answer, those of forks too', async (run) => {
      const id = await run.chat(null, 'one', 'eins', { figures: storedFigures('eliza 2 ü\n"🚀"', used) });
      await run.chat(id, 'two', 'zwei');
      await run.chat(id, 'three', 'drei', { images: [image], figures: storedFigures('m'.repeat(5000), unknownUsage) });
      await run.conversations.fork(id, 'key alice', 2);
      const [fork, whole] = (await run.all()).map(({ transcript }) => figuresIn(transcript));
      const first = { model: 'eliza 2 ü\n"🚀"', usage: { inputTokens: 5, outputTokens: 1, costUsd: 0.25 } };
      expect([fork, whole?.slice(0, 4)]).toEqual([
        [null, first],
        [null, first, null, null],
      ]);
      expect(whole?.[5]).toEqual({
        model: 'm'.repeat(5000),
        usage: { inputTokens: null, outputTokens: null, costUsd: null },
      });
    });

    keeps('goes on with a conversation', async (run, services) => {
      const id = await run.chat(null, 'one', 'eins');
      const next = isDurable ? await services.next() : run;
      await next.chat(id, 'two', 'zwei');
      expect(await next.snapshot(id)).toMatchObject({ messageCount: 4, tokensUsed: 14 });
      return next;
    });

    keeps('keeps the order of activity, and whose a conversation is', async (run) => {
      const ids = [await run.chat(null, 'a', 'A'), await run.chat(null, 'b', 'B'), await run.chat(null, 'c', 'C')];
      await run.chat(ids[0] ?? null, 'd', 'D');
      await run.chat(null, 'e', 'E', { client: 'key bob' });
    });

    keeps('keeps forks, whatever becomes of what they were made from', async (run) => {
      const id = await run.chat(null, 'one', 'eins', { system: 'Count', images: [image] });
      await run.chat(id, 'two', 'zwei');
      const fork = await run.conversations.fork(id, 'key alice', 2);
      await run.chat(fork.id, 'three', 'drei');
      await run.conversations.fork(fork.id, 'key alice', null);
      await run.conversations.removeConversation(id, 'key alice');
      expect(await run.all()).toHaveLength(2);
    });

    keeps('keeps which conversations are versions of each other, whichever of them are removed', async (run) => {
      const root = await run.chat(null, 'one', 'eins');
      for (const text of ['two', 'three']) await run.chat(root, text, text);
      await run.conversations.rename(root, 'key alice', 'Numbers');
      const fork = async (id: string, messages: number) => (await run.conversations.fork(id, 'key alice', messages)).id;
      const four = await fork(root, 4);
      await run.chat(four, 'four', 'vier');
      const five = await fork(four, 6);
      const other = await run.chat(null, 'other', 'anders', { versionOf: five });
      await run.chat(null, 'alone', 'allein');
      const all = {
        ...{ [root]: null, [four]: `${root} 4`, [five]: `${root} 4 ${four} 6`, [other]: `${root} 0` },
        ...{ [await fork(five, 2)]: `${root} 2`, [await fork(other, 2)]: `${root} 0 ${other} 2` },
        ...{ [await fork(five, 4)]: `${root} 4`, [await fork(five, 6)]: `${root} 4 ${four} 6` },
      };
      for (const id of [root, four, other]) expect(await run.versions(id)).toEqual(all);
      expect(await run.snapshot(other)).toMatchObject({ title: 'Numbers', origins: `${root} 0` });
      await run.conversations.removeConversation(root, 'key alice');
      const { [root]: _, ...others } = all;
      for (const id of [root, five]) expect(await run.versions(id)).toEqual(others);
      for (const order of [
        { versionOf: root },
        { versionOf: four, client: 'key bob' as const },
        { versionOf: 'nothing' },
      ])
        await expect(run.chat(null, 'more', 'mehr', order)).rejects.toMatchObject({ reason: 'conversation_unknown' });
      expect(await run.versions(four, 'key bob')).toEqual({});
    });

    keeps('keeps titles, those of forks too, and the first words where there is none', async (run) => {
      const [first, second] = [await run.chat(null, 'one', 'eins'), await run.chat(null, 'two', 'zwei')];
      const named = await run.conversations.rename(first, 'key alice', odd.replace('\u0000', ''));
      const fork = await run.conversations.fork(first, 'key alice', null);
      expect(fork.title).toBe(named.title);
      await run.conversations.rename(first, 'key alice', 'Another');
      await run.conversations.rename(second, 'key alice', 'Gone soon');
      expect(await run.conversations.rename(second, 'key alice', null)).toMatchObject({ id: second, title: 'two' });
      await run.chat(first, 'more', 'mehr');
      expect((await run.all()).map(({ title }) => title)).toEqual(['Another', named.title, 'two']);
      expect((await run.snapshot(first)).title).toBe('Another');
    });

    keeps('finds conversations by words in their titles and messages, with the place of the words', async (run) => {
      for (const text of ['Bread', 'Butter', 'Jam']) await run.chat(null, text, `Here is ${text}`);
      await run.conversations.rename(await run.chat(null, 'Honey', 'Sweet'), 'key alice', 'BREAD with honey');
      const long = await run.chat(null, `${'x '.repeat(20_000)}bread`, 'No');
      await run.chat(long, 'More', 'It is toast now', { images: [image] });
      expect((await run.found('bread')).map(([, place]) => place)).toEqual([
        { message: 0, text: `… ${'x '.repeat(19)}bread` },
        { message: null, text: 'BREAD with honey' },
        { message: null, text: 'Bread' },
      ]);
      expect((await run.found('toast IT')).map(([, place]) => place)).toEqual([
        { message: 3, text: 'It is toast now' },
      ]);
      expect(await run.found('sweet bread')).toEqual([['BREAD with honey', { message: 1, text: 'Sweet' }]]);
      expect(await run.found('%')).toEqual([]);
    });

    keeps('gives no title to what is not there, or is of another client', async (run) => {
      const id = await run.chat(null, 'one', 'eins');
      await expect(run.conversations.rename('nothing', 'key alice', 'x')).rejects.toMatchObject({ code: 'not_found' });
      await expect(run.conversations.rename(id, 'key bob', 'x')).rejects.toMatchObject({ code: 'not_found' });
      await run.conversations.removeConversation(id, 'key alice');
      await expect(run.conversations.rename(id, 'key alice', 'x')).rejects.toMatchObject({ code: 'not_found' });
    });

    keeps('brings back nothing that was removed, a turn that was being kept included', async (run) => {
      const id = await run.chat(null, 'one', 'eins');
      const other = await run.chat(null, 'two', 'zwei');
      const answering = () => run.conversations.removeConversation(id, 'key alice');
      expect(await run.chat(id, 'more', 'mehr', { answering })).toBe(id);
      expect((await run.all()).map((each) => each.id)).toEqual([other]);
    });

    keeps(
      'brings back nothing that was evicted',
      async (run) => {
        for (const text of ['one', 'two', 'three', 'four']) await run.chat(null, text, text);
        expect(run.store.counts.conversations).toBe(2);
      },
      { maxConversations: 2 },
    );

    it('brings back nothing that has expired', () =>
      withServices(async (services) => {
        const run = await services.next({ ttlMs: 1 });
        await run.chat(null, 'one', 'eins');
        await delay(systemClock, 20);
        expect(await run.all()).toEqual([]);
        expect(await (await services.next({ ttlMs: 1 })).all()).toEqual([]);
        expect(await (await services.next()).all()).toEqual([]);
      }));

    keeps('keeps many turns at the same time', async (run) => {
      const texts = Array.from({ length: 300 }, (_, index) => `number ${index}`);
      const ids = await Promise.all(texts.map((text) => run.chat(null, text, text)));
      await Promise.all(ids.map((id, index) => run.chat(id, `again ${index}`, 'yes')));
    });
  });
}
