import { join } from 'node:path';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { delay, systemClock } from '../../../src/shared/clock.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { until } from '../../support/basics/until.js';
import { type Service, startService } from '../../support/service/service.js';

const clients = 4;
const mebibyte = 1024 * 1024;
const longestText = 10_000;
const turnsOfOne = 6;
/** How long the disk stays full, and how long the clients send messages while there is space. */
const talkMs = 4000;
/** Longer than the retry interval of the service. */
const backMs = 5000;

interface Talk {
  readonly id: string;
  /** Messages of the answered turns. */
  readonly said: string[];
}

/** Clients with the conversations that they know, and the responses that they received. */
class Talkers {
  readonly talks: Talk[] = [];
  readonly fates = new Map<string, number>();
  isOver = false;
  #turns = 0;

  /** Runs one client, which sends messages repeatedly. Each is echoed or refused. */
  async talk(service: Service): Promise<void> {
    for (let talk: Talk | null = null; !this.isOver; ) {
      if (talk?.said.length === turnsOfOne) talk = null;
      const message = `turn ${++this.#turns} ${'x'.repeat(Math.random() * longestText)}`;
      const turn = { message, ...(talk !== null && { conversation_id: talk.id }) };
      const { status, body } = await service.post('/chat', turn);
      const fate = status === 200 && body.response === message ? 'answered' : `${status} ${body.error}`;
      this.fates.set(fate, this.count(fate) + 1);
      if (fate === 'answered') talk = this.#heard(talk, String(body.conversation_id), message);
      else await delay(systemClock, 50);
    }
  }

  #heard(known: Talk | null, id: string, message: string): Talk {
    const talk = known ?? { id, said: [] };
    if (known === null) this.talks.push(talk);
    talk.said.push(message);
    return talk;
  }

  count(fate: string): number {
    return this.fates.get(fate) ?? 0;
  }

  /** Expects the store to have every answered turn, and nothing else. */
  async check(service: Service): Promise<void> {
    for (const { id, said } of this.talks) {
      const { body } = await service.get(`/chat/${id}/messages`);
      const texts = (body.messages as { content: string }[]).map(({ content }) => content);
      expect(texts).toEqual(said.flatMap((text) => [text, text]));
    }
  }
}

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Skipped, because only root can mount a disk: a disk that clients fill.\n');

(isRoot ? describe : describe.skip)('A disk that the data of clients fills', () => {
  it('refuses data without space, keeps all answered turns, and accepts data when there is space', async () => {
    await using disk = await mountTinyDisk(3 * mebibyte);
    const path = join(disk.path, 'state', 'store.db');
    const env = { MODEL_API_STORE: `sqlite:${path}`, MODEL_API_DEFAULT_MODEL: 'echo' };
    const talkers = new Talkers();
    const refused = '503 store_unavailable';
    {
      await using service = await startService({ env });
      const talking = Promise.all(Array.from({ length: clients }, () => talkers.talk(service)));
      await until(() => talkers.count(refused) > 0, 'the disk to be full', 60_000);
      const before = talkers.count('answered');
      await delay(systemClock, talkMs);
      expect(talkers.count('answered')).toBeLessThan(before + clients); // requests that were in progress
      await disk.resize(64 * mebibyte);
      const grownMs = performance.now();
      await until(() => talkers.count('answered') >= before + clients, 'answers', backMs);
      const tookMs = performance.now() - grownMs;
      await delay(systemClock, talkMs);
      talkers.isOver = true;
      await talking;
      expect([...talkers.fates.keys()].toSorted()).toEqual([refused, 'answered']);
      const told = service.logs.filter(({ event }) => /^store_(down|back)$/.test(event));
      expect(told.map(({ event }) => event)).toEqual(['store_down', 'store_back']);
      process.stderr.write(`${JSON.stringify([...talkers.fates])}, answers after ${Math.round(tookMs)} ms of room\n`);
    }
    {
      await using service = await startService({ env });
      await talkers.check(service);
      const { body } = await service.get('/chat?limit=100');
      expect(body.conversations).toHaveLength(talkers.talks.length);
    }
    const sql = connectTo(path);
    expect(sql.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
    sql.close();
  });
});
