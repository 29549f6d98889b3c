import { join } from 'node:path';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { chatOf, startListener } from '../../support/clients/chat.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import type { Service } from '../../support/service/service.js';

const kills = Number(process.env.STORE_KILLS ?? 4);
const clients = 6;
const longestMs = 800;
/** Time in which the workers terminate the remaining processes of its jobs. */
const goneMs = 10_000;

/** Conversation as its client knows it. */
interface KnownConversation {
  readonly id: string;
  /** Messages of the answered turns. */
  readonly said: string[];
  /** Message of a turn without an answer: the store may have it or not. */
  open: string | null;
}

/** Clients with the conversations that they know, across restarts of the service. */
class Clients {
  readonly #known: KnownConversation[] = [];
  answered = 0;
  #count = 0;

  /** Runs one client, which sends messages until the service dies. */
  async talk(service: Service): Promise<void> {
    for (;;) {
      const known = this.#count % 3 === 0 ? undefined : this.#idle();
      const text = `message ${++this.#count}`;
      if (known !== undefined) known.open = text;
      const body = { message: text, ...(known !== undefined && { conversation_id: known.id }) };
      const answer = await service.post('/chat', body).catch(() => null);
      if (answer?.status !== 200) return;
      const { id, response } = chatOf(answer);
      this.answered++;
      if (known === undefined) this.#known.push({ id, said: [text], open: null });
      else {
        known.said.push(text);
        known.open = null;
        expect(response.split('\n')).toEqual(known.said);
      }
    }
  }

  /** Expects every answered turn in order. A turn without an answer is stored completely or not at all. */
  async check(service: Service): Promise<void> {
    for (const known of this.#known) {
      const { status, body } = await service.get(`/chat/${known.id}/messages`);
      expect(status).toBe(200);
      const messages = body.messages as { role: string; content?: string; text?: string }[];
      const users = messages.filter(({ role }) => role === 'user').map(({ content, text }) => content ?? text);
      expect(messages.length).toBe(2 * users.length);
      expect([known.said, [...known.said, known.open]]).toContainEqual(users);
      if (users.length > known.said.length) known.said.push(known.open ?? '');
      known.open = null;
    }
  }

  get count(): number {
    return this.#known.length;
  }

  #idle(): KnownConversation | undefined {
    const idle = this.#known.filter(({ open }) => open === null);
    return idle[Math.floor(Math.random() * idle.length)];
  }
}

describe('A killed service', () => {
  it(`has every answered turn completely, ${kills} times`, async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'state', 'store.db');
    const env = { MODEL_API_STORE: `sqlite:${path}`, MODEL_API_MAX_CONVERSATIONS: '100000' };
    const talking = new Clients();
    for (let kill = 0; kill < kills; kill++) {
      const service = await startListener(env);
      await talking.check(service);
      const talks = Promise.all(Array.from({ length: clients }, () => talking.talk(service)));
      const before = talking.answered;
      // The first answers of a service are slow, because the thread of the tokenizer starts.
      const isEarly = kill % 5 === 0;
      if (!isEarly) await until(() => talking.answered > before, 'an answer');
      await new Promise((resolve) => setTimeout(resolve, Math.random() * longestMs));
      service.process.kill('SIGKILL');
      await Promise.all([service.exited, talks]);
      await untilTreeGone(service, goneMs);
      await service.stop();
    }
    await using service = await startListener(env);
    await talking.check(service);
    await service.stop();
    const sql = connectTo(path);
    expect(sql.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
    sql.close();
    process.stderr.write(`${kills} kills, ${talking.answered} turns answered, ${talking.count} conversations\n`);
    expect(talking.answered).toBeGreaterThan(kills);
  }, 900_000);
});
