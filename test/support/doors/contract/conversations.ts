import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../basics/folder.js';
import type { Service } from '../../service/service.js';
import { keys, type Open } from './house.js';

const { alice, bob } = keys;
const unknownId = 'A'.repeat(24);

export function describeConversations(open: Open): void {
  describe('in conversations', () => {
    let service: Service;
    let folder: Awaited<ReturnType<typeof temporaryFolder>>;

    beforeAll(async () => {
      folder = await temporaryFolder();
      const file = join(folder.path, 'keys');
      await writeFile(file, 'alice key-of-alice\nbob key-of-bob\n');
      service = await open('answers', { MODEL_API_KEY_FILE: file });
    });
    afterAll(async () => {
      await service.stop();
      await folder[Symbol.asyncDispose]();
    });

    it('begins one, goes on with it, shows it and forgets it', async () => {
      const first = await service.post('/chat', { message: 'My name is Ada', system: 'Be kind.' }, alice);
      const { conversation_id: id, tokens_used } = first.body;
      expect([first.status, first.body.message_count]).toEqual([200, 2]);
      expect(first.body.message).toEqual({ role: 'assistant', content: first.body.response });

      const second = await service.post('/chat', { message: 'What is my name?', conversation_id: id }, alice);
      expect([second.status, second.body.conversation_id, second.body.message_count]).toEqual([200, id, 4]);
      expect(second.body.tokens_used).toBeGreaterThan(tokens_used as number);

      const { status, body } = await service.get(`/chat/${id}`, alice);
      const { message_count, tokens_used: tokens, last_activity_at, expires_at } = second.body;
      const figures = { message_count, tokens_used: tokens, last_activity_at, expires_at };
      expect([status, body]).toEqual([200, expect.objectContaining({ status: 'active', ...figures })]);

      expect((await service.delete(`/chat/${id}`, alice)).body).toMatchObject({ conversation_id: id, deleted: true });
      expect((await service.get(`/chat/${id}`, alice)).status).toBe(404);
    });

    it('lists those of the client, the last one first, and tells what was said, in two forms', async () => {
      const { body: older } = await service.post('/chat', { message: 'I am of bob', system: 'Be kind.' }, bob);
      const { body: newer } = await service.post('/chat', { message: 'So am I' }, bob);
      const first = await service.get('/chat?limit=1', bob);
      const second = await service.get(`/chat?limit=1&cursor=${first.body.next_cursor}`, bob);
      const shown = [first, second].map(
        ({ body }) => (body.conversations as { conversation_id: string; title: string }[])[0],
      );
      expect(shown).toMatchObject([
        { conversation_id: newer.conversation_id, title: 'So am I' },
        { conversation_id: older.conversation_id, title: 'I am of bob' },
      ]);
      const foreign = await service.get(`/chat?cursor=${first.body.next_cursor}`, alice);
      expect(JSON.stringify(foreign.body.conversations)).not.toContain('of bob');
      const path = `/chat/${older.conversation_id}/messages`;
      const messages = [
        { role: 'user', content: 'I am of bob' },
        { role: 'assistant', content: older.response },
      ];
      expect((await service.get(path, bob)).body).toMatchObject({ system: 'Be kind.', messages });
      expect((await service.get(`${path}?format=markdown`, bob)).text).toContain('## User\n\n> I am of bob\n');
      for (const bad of [`${path}?format=pdf`, '/chat?limit=0']) {
        const { status, body } = await service.get(bad, bob);
        expect([status, body.error]).toEqual([400, 'validation_error']);
      }
    });

    it('names one, shows its title wherever it is listed, and brings back its first words', async () => {
      const { body } = await service.post('/chat', { message: 'First words' }, alice);
      const path = `/chat/${body.conversation_id}`;
      const listed = async () => (await service.get('/chat?search=RENA', alice)).body.conversations;
      const named = await service.patch(path, { title: '  A “renamed” one ' }, alice);
      expect([named.status, named.body.title, named.body.message_count]).toEqual([200, 'A “renamed” one', 2]);
      expect((await service.get(path, alice)).body.title).toBe('A “renamed” one');
      expect(await listed()).toMatchObject([{ conversation_id: body.conversation_id, title: 'A “renamed” one' }]);
      for (const title of ['', '  ', 'x'.repeat(201), 'two\nlines', '\u0000', 7, undefined]) {
        const { status, body: refused } = await service.patch(path, { title }, alice);
        expect([status, refused.error]).toEqual([400, 'validation_error']);
      }
      expect((await service.patch(path, { title: '🚀'.repeat(200) }, alice)).status).toBe(200);
      expect((await service.patch(path, { title: null }, alice)).body.title).toBe('First words');
      expect(await listed()).toEqual([]);
      expect((await service.get('/chat?search=', alice)).status).toBe(400);
    });

    it('forks one, and both go on by themselves', async () => {
      const { body: origin } = await service.post('/chat', { message: 'My name is Ada' }, alice);
      const fork = await service.post(`/chat/${origin.conversation_id}/fork`, { from: 2 }, alice);
      expect([fork.status, fork.body.message_count, fork.body.tokens_used]).toEqual([201, 2, origin.tokens_used]);
      for (const { conversation_id } of [fork.body, origin]) {
        const { status, body } = await service.post('/chat', { message: 'What is my name?', conversation_id }, alice);
        expect([status, body.conversation_id, body.message_count]).toEqual([200, conversation_id, 4]);
      }
      const odd = await service.post(`/chat/${origin.conversation_id}/fork`, { from: 3 }, alice);
      expect([odd.status, odd.body.error]).toEqual([400, 'validation_error']);
    });

    it('imports an exported one, which then goes on by itself', async () => {
      const file = { name: 'a.txt', media_type: 'text/plain', data: Buffer.from('A file').toString('base64') };
      const { body: origin } = await service.post('/chat', { message: 'My name is Ada', files: [file] }, alice);
      const id = origin.conversation_id as string;
      await service.post('/chat', { message: 'Hello', conversation_id: id }, alice);
      const exported = (await service.get(`/chat/${id}/messages`, alice)).body;
      await service.delete(`/chat/${id}`, alice);
      const { status, body } = await service.post('/chat/import', exported, bob);
      expect([status, body.message_count, body.title, body.origins]).toEqual([201, 4, 'My name is Ada', []]);
      const imported = (await service.get(`/chat/${body.conversation_id}/messages`, bob)).body;
      expect([imported.system, imported.messages]).toEqual([exported.system, exported.messages]);
      const asked = { message: 'What is my name?', conversation_id: body.conversation_id };
      const { body: next } = await service.post('/chat', asked, bob);
      expect(next.message_count).toBe(6);
      expect((await service.get(`/chat/${body.conversation_id}`, alice)).status).toBe(404);
    });

    it('lists the versions of one: its forks, and conversations that replace its first message', async () => {
      const { body: root } = await service.post('/chat', { message: 'My name is Ada' }, alice);
      const id = root.conversation_id as string;
      const { body: fork } = await service.post(`/chat/${id}/fork`, {}, alice);
      const { body: other } = await service.post('/chat', { message: 'My name is Bob', version_of: id }, alice);
      const { body } = await service.get(`/chat?version_of=${fork.conversation_id}`, alice);
      const listed = body.conversations as { conversation_id: string; origins: object[] }[];
      expect(listed.map((one) => [one.conversation_id, one.origins])).toEqual([
        [other.conversation_id, [{ conversation_id: id, message_count: 0 }]],
        [fork.conversation_id, [{ conversation_id: id, message_count: 2 }]],
        [id, []],
      ]);
      const one = (await service.get(`/chat/${fork.conversation_id}`, alice)).body;
      expect([one.origins, fork.origins]).toEqual([listed[1]?.origins, listed[1]?.origins]);
      expect((await service.get(`/chat?version_of=${id}`, bob)).body.conversations).toEqual([]);
      for (const [asked, client] of [
        [{ version_of: id }, bob],
        [{ version_of: unknownId }, alice],
        [{ version_of: id, conversation_id: id }, alice],
        [{ version_of: 7 }, alice],
      ] as const) {
        const { status, body: refused } = await service.post('/chat', { message: 'Hi', ...asked }, client);
        expect([status, refused.error, String(refused.message).startsWith('version_of: ')]).toEqual([
          400,
          'validation_error',
          true,
        ]);
      }
    });

    it('gives the same answer for one that is gone, one of somebody else, and one that never was', async () => {
      const { body } = await service.post('/chat', { message: 'This is mine' }, alice);
      const { body: other } = await service.post('/chat', { message: 'This is short' }, bob);
      await service.delete(`/chat/${other.conversation_id}`, bob);
      const { body: fork } = await service.post(`/chat/${body.conversation_id}/fork`, {}, alice);
      for (const id of [body.conversation_id, fork.conversation_id, other.conversation_id, unknownId]) {
        const answers = [
          await service.post('/chat', { message: 'Hi', conversation_id: id }, bob),
          await service.get(`/chat/${id}`, bob),
          await service.get(`/chat/${id}/messages`, bob),
          await service.post(`/chat/${id}/fork`, {}, bob),
          await service.patch(`/chat/${id}`, { title: 'Mine' }, bob),
          await service.delete(`/chat/${id}`, bob),
        ];
        const answersWithoutId = answers.map(({ status, body: { request_id, ...rest } }) => ({ status, ...rest }));
        const missing = { status: 404, error: 'not_found', message: 'no such conversation' };
        const unusable = expect.objectContaining({ status: 400, error: 'validation_error' });
        expect(answersWithoutId).toEqual([unusable, missing, missing, missing, missing, missing]);
      }
      expect((await service.get(`/chat/${body.conversation_id}`, alice)).status).toBe(200);
    });
  });
}
