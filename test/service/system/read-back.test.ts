import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { attempts, chat, startListener, unusable } from '../../support/chat.js';
import { metric } from '../../support/exposition.js';
import { temporaryFolder } from '../../support/folder.js';
import { untilJobs } from '../../support/jobs.js';
import { type Service, startService, twoWorkers } from '../../support/service.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Returns the messages of a conversation. */
async function messagesOf(service: Service, id: string) {
  const { body } = await service.get(`/chat/${id}/messages`);
  return (body.messages as { content: string }[]).map(({ content }) => content);
}

describe('Conversations that clients read', () => {
  it('contain the full text, with system text and images, as JSON and as a Markdown file', async () => {
    await using service = await startService({ env: twoWorkers });
    const images = [{ media_type: 'image/png', data: png }];
    const first = { message: 'My name is Ada\n```\n"', system: 'Be kind.', images };
    const { body } = await service.post('/chat', first);
    const path = `/chat/${body.conversation_id}/messages`;
    expect((await service.get(path)).body).toEqual({
      conversation_id: body.conversation_id,
      system: 'Be kind.',
      messages: [
        { role: 'user', content: first.message, images },
        { role: 'assistant', content: body.response, model: body.model, usage: body.usage },
      ],
      request_id: expect.any(String),
    });
    const { headers, text } = await service.get(`${path}?format=markdown&download=true`);
    expect(headers.get('content-disposition')).toBe(`attachment; filename="conversation-${body.conversation_id}.md"`);
    expect(text).toContain(
      '## User\n\n> My name is Ada\n> ```\n> "\n\n*Image: image/png, 70 bytes, left out here.*\n\n## Assistant',
    );
    await service.log('http_request_completed', (record) => record.path === path);
    expect(JSON.stringify(service.logs)).not.toContain('Ada');
  });

  it('continue separately from their forks, each in a process that has the history of that conversation only', async () => {
    await using service = await startListener({ ...twoWorkers, MODEL_API_MAX_CONCURRENT: '2' });
    const { id } = await chat(service, 'one');
    await chat(service, 'two', id);
    const { status, body } = await service.post(`/chat/${id}/fork`, { from: 2 });
    expect([status, body.message_count]).toEqual([201, 2]);
    const fork = body.conversation_id as string;
    const [later, other] = await Promise.all([chat(service, 'three', id), chat(service, 'four', fork)]);
    expect([later.response, other.response]).toEqual(['one\ntwo\nthree', 'one\nfour']);
    const { body: second } = await service.post(`/chat/${fork}/fork`, {});
    await service.delete(`/chat/${fork}`);
    const five = await chat(service, 'five', second.conversation_id as string);
    expect(five.response).toBe('one\nfour\nfive');
    expect(await messagesOf(service, five.id)).toEqual(['one', 'one', 'four', 'one\nfour', 'five', 'one\nfour\nfive']);
    expect(await metric(service, 'conversations_created_total')).toBe(3);
  });

  it('continue separately from their forks with the demo model and its live processes', async () => {
    await using service = await startService();
    const { id } = await chat(service, 'My name is Ada');
    const fork = (await service.post(`/chat/${id}/fork`, {})).body.conversation_id as string;
    const answers = await Promise.all([id, fork].map((of) => chat(service, 'What is my name?', of)));
    expect(answers.map(({ response, count }) => [response, count])).toEqual(
      answers.map(() => ['Your name is Ada.', 4]),
    );
  });

  it('show their state before a running turn, also while the service drains and when they are forked', async () => {
    await using service = await startListener(twoWorkers);
    const { id } = await chat(service, 'one');
    await untilJobs(service, 0, 0); // the processes of that turn have exited
    const client = new AbortController();
    const turn = service.post('/chat', { message: 'hang', conversation_id: id }, {}, client.signal).catch(() => null);
    await untilJobs(service, 1, 0);
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    expect(await messagesOf(service, id)).toEqual(['one', 'one']);
    const fork = await service.post(`/chat/${id}/fork`, {});
    expect([fork.status, fork.body.message_count]).toEqual([201, 2]);
    client.abort();
    await turn;
    expect(await service.exited).toBe(0);
  });

  it('belong to their client only', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys');
    await writeFile(file, 'alice key-of-alice\nbob key-of-bob\n');
    await using service = await startService({ env: { MODEL_API_KEY_FILE: file } });
    const [alice, bob] = [{ 'x-api-key': 'key-of-alice' }, { 'x-api-key': 'key-of-bob' }];
    const { id } = await chat(service, 'Hi', null, alice);
    const fork = (await service.post(`/chat/${id}/fork`, {}, alice)).body.conversation_id as string;
    for (const foreign of [id, fork, 'A'.repeat(24), '..%2f..', '\u001b"']) {
      expect(await attempts(service, foreign, bob)).toEqual(unusable);
    }
    const { body } = await service.get('/chat?limit=1', alice);
    expect((await service.get(`/chat?cursor=${body.next_cursor}`, bob)).body.conversations).toEqual([]);
    const rest = await service.get(`/chat?cursor=${body.next_cursor}`, alice);
    expect(rest.body.conversations).toMatchObject([{ conversation_id: id, title: 'Hi' }]);
  });

  it('are forbidden if MODEL_API_READ_BACK is false, and all other requests still work', async () => {
    await using service = await startService({ env: { MODEL_API_READ_BACK: 'false' } });
    const { id } = await chat(service, 'Hi');
    const refused = [
      await service.get('/chat'),
      await service.get(`/chat/${id}/messages`),
      await service.get(`/chat/${'A'.repeat(24)}/messages`),
      await service.post(`/chat/${id}/fork`, {}),
      await service.patch(`/chat/${id}`, { title: 'Named' }),
    ];
    for (const { status, body } of refused) {
      expect([status, body.error]).toEqual([403, 'forbidden']);
      expect(body.message).toContain('MODEL_API_READ_BACK');
    }
    expect((await chat(service, 'again', id)).count).toBe(4);
    const { status, body } = await service.get(`/chat/${id}`);
    expect([status, body.title]).toEqual([200, null]);
    expect((await service.delete(`/chat/${id}`)).status).toBe(200);
  });
});
