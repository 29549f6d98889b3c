import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folder.js';
import type { Service } from '../support/service.js';
import { keys, type Open } from './house.js';

const { alice, bob } = keys;
const elsewhere = 'A'.repeat(24);

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

    it('gives the same answer for one that is gone, one of somebody else, and one that never was', async () => {
      const { body } = await service.post('/chat', { message: 'This is mine' }, alice);
      const { body: other } = await service.post('/chat', { message: 'This is short' }, bob);
      await service.delete(`/chat/${other.conversation_id}`, bob);
      for (const id of [body.conversation_id, other.conversation_id, elsewhere]) {
        const answers = [
          await service.post('/chat', { message: 'Hi', conversation_id: id }, bob),
          await service.get(`/chat/${id}`, bob),
          await service.delete(`/chat/${id}`, bob),
        ];
        const told = answers.map(({ status, body: { request_id, ...rest } }) => ({ status, ...rest }));
        const missing = { status: 404, error: 'not_found', message: 'no such conversation' };
        expect(told).toEqual([expect.objectContaining({ status: 400, error: 'validation_error' }), missing, missing]);
      }
      expect((await service.get(`/chat/${body.conversation_id}`, alice)).status).toBe(200);
    });
  });
}
