import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { attempts, chat, chatAndLeave, startListener, unusable } from '../../support/clients/chat.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers, runtimeOf, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';

const alice = { 'x-api-key': 'key-of-alice' };
const bob = { authorization: 'Bearer key-of-bob' };

/** Returns the IDs of the conversations that can still be used. */
async function aliveOf(service: Service, ids: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(ids.map((id) => service.get(`/chat/${id}`)));
  return ids.filter((_, number) => answers[number]?.status === 200);
}

describe('A conversation id that cannot be used', () => {
  it('is answered with the same text for an evicted, deleted, foreign or unknown conversation', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys');
    await writeFile(file, 'alice key-of-alice\nbob key-of-bob\n');
    await using service = await startService({
      env: { MODEL_API_KEY_FILE: file, MODEL_API_MAX_CONVERSATIONS: '2' },
    });
    const [evicted, deleted] = [await chat(service, 'Hi', null, bob), await chat(service, 'Hi', null, bob)];
    await service.delete(`/chat/${deleted.id}`, bob);
    await chat(service, 'Hi', null, bob);
    const foreign = await chat(service, 'Hi', null, alice);
    expect(await metric(service, 'conversations_removed_total{cause="evicted"}')).toBe(1);
    const others = [
      'A'.repeat(24),
      `${foreign.id}x`,
      foreign.id.slice(1),
      ' ',
      '__proto__',
      'ü/?#%',
      'x'.repeat(10_240),
    ];
    for (const id of [evicted.id, deleted.id, foreign.id, ...others]) {
      expect(await attempts(service, id, bob)).toEqual(unusable);
    }
    expect((await service.get(`/chat/${foreign.id}`, alice)).status).toBe(200);
  });

  it('is answered with the same text after it expired', async () => {
    await using service = await startService({ env: { MODEL_API_CONVERSATION_TTL_SECONDS: '0.5' } });
    const { id } = await chat(service, 'Hi');
    await until(async () => (await service.get(`/chat/${id}`)).status === 404, 'the conversation to expire');
    expect(await attempts(service, id)).toEqual(unusable);
  });
});

describe('The number of conversations', () => {
  it('is limited: exactly the least recently active are evicted', async () => {
    await using service = await startService({ env: { MODEL_API_MAX_CONVERSATIONS: '6' } });
    const ids: string[] = [];
    for (let number = 0; number < 6; number++) ids.push((await chat(service, `I am ${number}`)).id);
    for (const number of [0, 3]) await chat(service, 'Still here', ids[number]);
    await service.get(`/chat/${ids[1]}`); // reading does not count as activity
    for (let number = 0; number < 3; number++) ids.push((await chat(service, 'Me too')).id);
    expect(await aliveOf(service, ids)).toEqual([0, 3, 5, 6, 7, 8].map((number) => ids[number]));
    expect(await metric(service, 'conversations')).toBe(6);
    expect(await metric(service, 'conversations_removed_total{cause="evicted"}')).toBe(3);
  });

  it('may be one: each new conversation replaces the previous one once that is answered', async () => {
    await using service = await startService({ env: { MODEL_API_MAX_CONVERSATIONS: '1' } });
    const ids: string[] = [];
    for (let number = 0; number < 3; number++) ids.push((await chat(service, 'Me too')).id);
    expect(await aliveOf(service, ids)).toEqual(ids.slice(2));
  });

  it('never evicts a conversation in use, and refuses a new one if all are in use', async () => {
    await using service = await startListener({ MODEL_API_MAX_CONVERSATIONS: '2' });
    const { id } = await chat(service, 'begin');
    const busy = chatAndLeave(service, 'hang', id);
    await untilJobs(service, 1, 0);
    const other = await chat(service, 'the other');
    const third = await chat(service, 'the third');
    expect(await aliveOf(service, [id, other.id, third.id])).toEqual([id, third.id]);
    const first = chatAndLeave(service, 'hang');
    await untilJobs(service, 2, 0);
    const { status, headers, body } = await service.post('/chat', { message: 'no place' });
    expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'concurrency_limited', '1']);
    expect(await metric(service, 'rejected_total{reason="conversations_busy"}')).toBe(1);
    expect(await metric(service, 'rejected_total{reason="queue_full"}')).toBe(0);
    expect(await runtimeOf(service)).toMatchObject({ rejected_total: 1 });
    expect((await service.post('/ask', { prompt: 'a place' })).status).toBe(200);
    for (const turn of [busy, first]) await turn.leave();
    await recovers(service);
    expect((await chat(service, 'a place', id)).count).toBe(4);
  });
});

describe('The text of all conversations', () => {
  it('is limited in bytes: the least recently active are evicted', async () => {
    const env = { MODEL_API_CONVERSATION_MEMORY_MB: '1', MODEL_API_BODY_LIMIT: '4mb' };
    await using service = await startListener(env);
    const long = `long\n${'ü'.repeat(200_000)}`;
    const ids: string[] = [];
    for (let number = 0; number < 4; number++) ids.push((await chat(service, long)).id);
    expect(await aliveOf(service, ids)).toEqual(ids.slice(2));
    const { status, body } = await service.post('/chat', { message: 'x'.repeat(2_000_000) });
    expect([status, body.error]).toEqual([400, 'validation_error']);
    expect(await aliveOf(service, ids)).toEqual(ids.slice(2));
  });
});

describe('tokens_used', () => {
  it('equals the count of the o200k tokenizer for all messages', async () => {
    await using service = await startService();
    const first = await chat(service, 'Hello, my name is Ada — grüße 🚀 <|endoftext|>');
    const said = countTokens('Hello, my name is Ada — grüße 🚀 <|endoftext|>', { disallowedSpecial: new Set() });
    expect(first.tokens).toBe(said + countTokens(first.response));
    const second = await chat(service, 'What is my name?', first.id);
    expect(second.tokens).toBe(first.tokens + countTokens('What is my name?') + countTokens(second.response));
    expect(await metric(service, 'conversation_tokens')).toBe(second.tokens);
  });

  it('is counted while other requests are served, however long the text', async () => {
    await using service = await startWithProgram('echo ok', { MODEL_API_BODY_LIMIT: '8mb' });
    const texts = ['word '.repeat(400_000), 'x'.repeat(2_000_000), '语言模型'.repeat(150_000)];
    const pending = { turns: texts.length };
    const turns = texts.map((text) => chat(service, text).finally(() => pending.turns--));
    let slowestMs = 0;
    await until(
      async () => {
        const startedMs = performance.now();
        await service.get('/health');
        slowestMs = Math.max(slowestMs, performance.now() - startedMs);
        return pending.turns === 0;
      },
      'the turns to end',
      60_000,
    );
    for (const { tokens } of await Promise.all(turns)) expect(tokens).toBeGreaterThan(100_000);
    expect(slowestMs).toBeLessThan(2500);
  }, 90_000);
});
