import { StoredFiles } from '../../../../src/features/files/stored-files.js';
import { MemoryFiles } from '../../../../src/features/stores/memory/memory-files.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { batchOf } from '../../../support/stores/file-store-contract.js';

const client = 'key ada';
const dayMs = 86_400_000;

function filesWith(more: Partial<ConstructorParameters<typeof StoredFiles>[1]> = {}) {
  const clock = new FakeClock();
  const store = new MemoryFiles();
  const settings = {
    MODEL_API_FILES: 'memory',
    MODEL_API_FILES_MB: 10,
    MODEL_API_MAX_FILES: 3,
    MODEL_API_FILES_TTL_SECONDS: 30 * dayMs,
    ...more,
  } as const;
  return { clock, store, files: new StoredFiles(store, settings, clock) };
}

async function fileIn(
  files: StoredFiles,
  text: string,
  owner: ClientText = client,
  ttlMs: number | null = null,
): Promise<string> {
  const id = await files.createFile({ client: owner, purpose: 'user_data', name: 'a.txt', mediaType: 'text/plain' });
  if (text !== '') await files.appendPiece(id, owner, Buffer.from(text));
  await files.completeFile({ id, client: owner, purpose: 'user_data', lines: 0, ttlMs });
  return id;
}

describe('Stored files', () => {
  it('are off by choice, with an error that names the variable', async () => {
    const { files } = filesWith({ MODEL_API_FILES: 'off' });
    await expect(fileIn(files, 'x')).rejects.toThrow(/MODEL_API_FILES is off/);
    await expect(files.findFile('file-x', client)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('leave in memory as much to other clients as each takes, and expire after a day', async () => {
    const mebi = 1024 ** 2;
    const { files, clock } = filesWith({ MODEL_API_FILES: 'store', MODEL_API_FILES_MB: 512 * mebi });
    const filled = async (owner: ClientText) => {
      const id = await files.createFile({ client: owner, purpose: 'batch', name: 'a', mediaType: 'text/plain' });
      for (let count = 0; ; count++) {
        const fault = await files.appendPiece(id, owner, Buffer.alloc(mebi)).catch((error: Error) => error);
        if (fault instanceof Error) return { id, count, fault };
      }
    };
    const first = await filled('key ada');
    expect(first.fault.message).toMatch(/half of the memory that other clients leave of 134217728 bytes/);
    const counts = [first.count];
    for (const name of ['bob', 'eve', 'ida']) counts.push((await filled(`key ${name}`)).count);
    expect(counts).toEqual([64, 32, 16, 8]);
    expect(await files.hasRoom('key ada')).toBe(false);
    expect(await files.hasRoom('key joe')).toBe(true);
    await files.removeFile(first.id, 'key ada');
    const id = await fileIn(files, 'x', 'key joe', 9 * dayMs);
    expect((await files.findFile(id, 'key joe')).expiresAt).toBe(clock.now() + dayMs);
    const { files: unlimited } = filesWith({ MODEL_API_FILES_MB: 999 * mebi });
    const whole = await unlimited.createFile({ client, purpose: 'batch', name: 'a', mediaType: 'text/plain' });
    for (let count = 0; count < 200; count++) await unlimited.appendPiece(whole, client, Buffer.alloc(mebi));
  });

  it('are limited in number and bytes for a key and all its sub-clients', async () => {
    const { files } = filesWith();
    const id = await fileIn(files, '12345678');
    await expect(fileIn(files, '123', 'key ada/bob')).rejects.toMatchObject({ code: 'payload_too_large' });
    await fileIn(files, '12');
    await expect(fileIn(files, '')).rejects.toThrow(/MODEL_API_MAX_FILES/);
    await fileIn(files, '1234567890', 'key bob');
    await files.removeFile(id, client);
    await fileIn(files, '12345678');
  });

  it('accept no bytes when they are whole, and none of another client', async () => {
    const { files } = filesWith();
    const id = await fileIn(files, 'abc');
    for (const owner of [client, 'key bob'] as const)
      await expect(files.appendPiece(id, owner, Buffer.from('d'))).rejects.toMatchObject({ code: 'not_found' });
    for (const attempt of [
      files.findFile(id, 'key bob'),
      files.removeFile(id, 'key bob'),
      files.readPiece(id, 'key bob', 0),
    ])
      await expect(attempt).rejects.toMatchObject({ code: 'not_found' });
    expect(String(await files.readPiece(id, client, 1))).toBe('bc');
  });

  it('expire after the requested time, at most after the longest', async () => {
    const { files, store, clock } = filesWith();
    const [short, long] = [await fileIn(files, 'a', client, dayMs), await fileIn(files, 'b', client, 90 * dayMs)];
    await clock.advance(dayMs);
    await expect(files.findFile(short, client)).rejects.toMatchObject({ code: 'not_found' });
    expect((await files.findFile(long, client)).expiresAt).toBe(clock.now() + 29 * dayMs);
    await store.expireFiles(clock.now(), 0);
    const { files: left } = await files.listFiles({ client, after: null, limit: 9, isAscending: true }, null);
    expect(left.map(({ id }) => id)).toEqual([long]);
  });

  it('stay visible after their time while a batch uses them', async () => {
    const { files, store, clock } = filesWith();
    const id = await fileIn(files, 'a', client, dayMs);
    await store.addBatch(batchOf('batch', { inputFile: id }));
    await clock.advance(2 * dayMs);
    await store.expireFiles(clock.now(), 0);
    expect(String(await files.readPiece(id, client, 0))).toBe('a');
    await store.removeBatch('batch');
    await expect(files.findFile(id, client)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('cannot be removed while a batch uses them', async () => {
    const { files, store } = filesWith();
    const id = await fileIn(files, 'a');
    await store.addBatch(batchOf('batch', { inputFile: id }));
    await expect(files.removeFile(id, client)).rejects.toThrow(/in use by batch/);
    await store.removeBatch('batch');
    await files.removeFile(id, client);
  });
});
