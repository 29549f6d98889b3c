import {
  type BatchState,
  type FileStore,
  filePieceBytes,
  type StoredBatch,
  type StoredFile,
} from '../../../src/features/stores/contract/files.js';
import type { PageOrder } from '../../../src/shared/files.js';
import { withStoresOf } from './delivery-store-contract.js';
import type { StorePlaceForTests } from './store-contract.js';

const now = Date.UTC(2026, 0, 1);
const page: PageOrder = { client: 'key ada', after: null, limit: 2, isAscending: false };

export function fileOf(id: string, more: Partial<StoredFile> = {}): StoredFile {
  const owner = { client: 'key ada' as const, holder: 'key ada' as const };
  const kind = { purpose: 'batch', name: 'prompts.jsonl', mediaType: 'application/jsonl' } as const;
  const size = { bytes: 0, lines: 0, isWhole: false };
  return { id, ...owner, ...kind, ...size, createdAt: now, expiresAt: now + 1000, ...more };
}

export function batchOf(id: string, more: Partial<StoredBatch> = {}): StoredBatch {
  const counts = { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  const progress = { status: 'waiting', cursor: 0, open: [], counts, startedAt: null, endedAt: null } as const;
  const caller = { groups: ['biology'], refusesFallback: false };
  const owner = { client: 'key ada' as const, holder: 'key ada' as const, caller };
  const files = { inputFile: 'in', outputFile: 'out', errorFile: 'err' };
  const times = { createdAt: now, expiresAt: now + 1000, removeAt: now + 2000, cancelAt: null };
  return { id, ...owner, api: 'chat', ...files, metadata: { odd: 'ü🚀' }, total: 3, ...times, progress, ...more };
}

/** Returns all bytes of a file. */
async function bytesOf(files: FileStore, id: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let from = 0; ; ) {
    const piece = await files.readPiece(id, from);
    if (piece.length === 0) return Buffer.concat(pieces);
    expect(piece.length).toBeLessThanOrEqual(filePieceBytes);
    pieces.push(piece);
    from += piece.length;
  }
}

const ids = ({ items }: { readonly items: readonly { readonly id: string }[] }) => items.map(({ id }) => id);

/** Tests the contract of all stores for files and batches. `isDurable`: both survive a restart. */
export function describeFileStore(name: string, isDurable: boolean, place: () => Promise<StorePlaceForTests>): void {
  const withStore = withStoresOf(place);

  describe(`Files in ${name}`, () => {
    it('have the bytes that were added, in pieces of any size', () =>
      withStore(async ({ files }, next) => {
        await files.createFile(fileOf('a'));
        const sizes = [1, filePieceBytes - 2, 0, 3, 2 * filePieceBytes + 5, filePieceBytes, 7];
        const pieces = sizes.map((size, index) => Buffer.alloc(size, index + 250));
        for (const data of pieces) await files.appendPieces([{ id: 'a', data }]);
        const whole = Buffer.concat(pieces);
        const stored = isDurable ? (await next()).files : files;
        expect((await bytesOf(stored, 'a')).equals(whole)).toBe(true);
        for (const from of [1, filePieceBytes, filePieceBytes + 1, whole.length - 1]) {
          const piece = await stored.readPiece('a', from);
          expect(piece.equals(whole.subarray(from, from + piece.length)) && piece.length > 0).toBe(true);
        }
        expect((await stored.findFile('a', 'key ada'))?.bytes).toBe(whole.length);
        expect(await stored.usageOf('key ada')).toMatchObject({ files: 1, bytes: whole.length });
      }));

    it('are found and listed only by their client, and listed only when they are whole', () =>
      withStore(async ({ files }) => {
        for (const id of ['a', 'b', 'c', 'd']) await files.createFile(fileOf(id));
        await files.createFile(fileOf('data'));
        await files.createFile(fileOf('x', { client: 'key ada/bob' }));
        const whole = { purpose: 'batch', lines: 4, expiresAt: now + 2000 } as const;
        expect(await files.completeFile('data', { ...whole, purpose: 'user_data' })).toBe(true);
        for (const id of ['a', 'b', 'c', 'x']) expect(await files.completeFile(id, whole)).toBe(true);
        expect(await files.completeFile('missing', whole)).toBe(false);
        expect(await files.findFile('a', 'key ada')).toEqual(fileOf('a', { ...whole, isWhole: true }));
        expect(await files.findFile('a', 'key ada/bob')).toBeNull();
        const first = await files.listFiles(page, ['batch']);
        expect([ids(first), first.hasMore]).toEqual([['c', 'b'], true]);
        const second = await files.listFiles({ ...page, after: 'b' }, ['batch']);
        expect([ids(second), second.hasMore]).toEqual([['a'], false]);
        const ascending = await files.listFiles({ ...page, isAscending: true, after: 'a' }, ['batch', 'user_data']);
        expect([ids(ascending), ascending.hasMore]).toEqual([['b', 'c'], true]);
        expect(ids(await files.listFiles({ ...page, after: 'missing' }, ['batch']))).toEqual([]);
        expect((await files.usageOf('key ada')).files).toBe(6);
      }));

    it('are removed with their bytes, when they expire, and when their upload was broken', () =>
      withStore(async ({ files }) => {
        await files.createFile(fileOf('old'));
        await files.createFile(fileOf('broken', { createdAt: now - 1 }));
        await files.createFile(fileOf('new'));
        await files.createFile(fileOf('gone'));
        for (const id of ['old', 'gone'])
          await files.completeFile(id, { purpose: 'batch', lines: 0, expiresAt: id === 'old' ? now : now + 1 });
        await files.appendPieces([{ id: 'gone', data: Buffer.from('text') }]);
        await files.removeFile('gone');
        await files.removeFile('missing');
        await files.expireFiles(now, now);
        await files.appendPieces([{ id: 'gone', data: Buffer.from('more') }]);
        expect(await files.usageOf('key ada')).toMatchObject({ files: 1, bytes: 0 });
        expect(await bytesOf(files, 'gone')).toEqual(Buffer.alloc(0));
        expect(await files.findFile('new', 'key ada')).not.toBeNull();
      }));

    it('are purged with their client', () =>
      withStore(async ({ files, upkeep }) => {
        await files.createFile(fileOf('a'));
        await files.appendPieces([{ id: 'a', data: Buffer.from('text') }]);
        await files.createFile(fileOf('b', { client: 'key bob', holder: 'key bob' }));
        await files.addBatch(batchOf('c'));
        await upkeep.purge('key ada');
        expect(await files.usageOf('key ada')).toMatchObject({ files: 0, bytes: 0 });
        expect((await files.usageOf('key bob')).othersBytes ?? 0).toBe(0);
        expect(await bytesOf(files, 'a')).toEqual(Buffer.alloc(0));
        expect(await files.findBatch('c', 'key ada')).toBeNull();
        expect(await files.findFile('b', 'key bob')).not.toBeNull();
      }));
  });

  describe(`Batches in ${name}`, () => {
    const running: BatchState = {
      ...batchOf('a').progress,
      status: 'running',
      cursor: 12,
      open: [{ jobId: 'j1', start: 0, end: 12, tries: 1 }],
      startedAt: now,
    };

    it('store their progress together with their results', () =>
      withStore(async ({ files }, next) => {
        for (const id of ['out', 'err']) await files.createFile(fileOf(id, { purpose: 'batch_output' }));
        await files.addBatch(batchOf('a'));
        expect(await files.leaseBatches(1000)).toEqual([batchOf('a')]);
        const results = [
          { id: 'out', data: Buffer.from('one\n') },
          { id: 'err', data: Buffer.from('two\n') },
        ];
        expect(await files.advance('a', running, results)).toBeNull();
        await files.cancelBatch('a', now + 1);
        await files.cancelBatch('a', now + 2);
        expect(await files.advance('a', running, results.slice(0, 1))).toBe(now + 1);
        const stored = isDurable ? (await next()).files : files;
        expect(await stored.findBatch('a', 'key ada')).toEqual(batchOf('a', { progress: running, cancelAt: now + 1 }));
        expect(await stored.findBatch('a', 'key bob')).toBeNull();
        expect(String(await stored.readPiece('out', 0))).toBe('one\none\n');
        expect(String(await stored.readPiece('err', 0))).toBe('two\n');
      }));

    it('are leased and counted until they have ended, and then unchanged', () =>
      withStore(async ({ files }) => {
        await files.addBatch(batchOf('a'));
        await files.addBatch(batchOf('b', { api: 'messages', client: 'key ada/bob' }));
        await files.addBatch(batchOf('c', { client: 'key bob', holder: 'key bob' }));
        expect((await files.openBatches('key ada')).map(({ id }) => id)).toEqual(['a', 'b']);
        expect((await files.leaseBatches(1000)).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
        await files.advance('a', { ...running, status: 'ended', endedAt: now }, []);
        await files.cancelBatch('a', now);
        expect((await files.leaseBatches(1000)).map(({ id }) => id)).toEqual(['b', 'c']);
        expect((await files.findBatch('a', 'key ada'))?.cancelAt).toBeNull();
        expect(ids(await files.listBatches(page, ['chat']))).toEqual(['a']);
        expect(ids(await files.listBatches({ ...page, client: 'key ada/bob' }, ['chat']))).toEqual([]);
        await files.removeBatch('b');
        expect(await files.advance('b', running, [])).toBe('lost');
        await files.expireFiles(now + 2000, now);
        expect(await files.findBatch('a', 'key ada')).toBeNull();
      }));

    it('are listed to make room: the oldest that have ended, of a holder with more than a number', () =>
      withStore(async ({ files }) => {
        for (const id of ['a', 'b', 'c', 'd'])
          await files.addBatch(batchOf(id, id === 'b' ? { client: 'key ada/bob' } : {}));
        await files.addBatch(batchOf('x', { client: 'key bob', holder: 'key bob' }));
        await files.leaseBatches(1000);
        for (const id of ['b', 'c', 'd']) await files.advance(id, { ...running, status: 'ended', endedAt: now }, []);
        const beyond = async (count: number) => (await files.endedBeyond('key ada', count)).map(({ id }) => id);
        expect([await beyond(4), await beyond(3), await beyond(2), await beyond(0)]).toEqual([
          [],
          [],
          ['b'],
          ['b', 'c', 'd'],
        ]);
        await files.removeBatch('b');
        expect(await beyond(2)).toEqual([]);
      }));

    it('are listed in pages that skip entries of other kinds, however many', () =>
      withStore(async ({ files }) => {
        await files.addBatch(batchOf('first', { api: 'messages' }));
        for (let count = 0; count < 120; count++) await files.addBatch(batchOf(`chat ${count}`));
        await files.addBatch(batchOf('last', { api: 'messages' }));
        const down = await files.listBatches({ ...page, limit: 5 }, ['messages']);
        expect([ids(down), down.hasMore]).toEqual([['last', 'first'], false]);
        const up = await files.listBatches({ ...page, limit: 1, isAscending: true }, ['messages']);
        expect([ids(up), up.hasMore]).toEqual([['first'], true]);
        const chats = await files.listBatches({ ...page, limit: 110, after: 'chat 119' }, ['chat']);
        expect([ids(chats).length, ids(chats).at(-1), chats.hasMore]).toEqual([110, 'chat 9', true]);
      }));

    it('protect their files and themselves until they end, also if all of them have expired', () =>
      withStore(async ({ files }) => {
        for (let count = 0; count < 25; count++) await files.createFile(fileOf(`old ${count}`));
        await files.createFile(fileOf('in'));
        await files.appendPieces([{ id: 'in', data: Buffer.from('line') }]);
        await files.completeFile('in', { purpose: 'batch', lines: 1, expiresAt: now - 1 });
        for (const id of ['out', 'err'])
          await files.createFile(fileOf(id, { createdAt: now - 9, expiresAt: now - 9, purpose: 'batch_output' }));
        await files.addBatch(batchOf('a', { removeAt: now - 1 }));
        await files.leaseBatches(1000);
        await files.advance('a', running, [{ id: 'out', data: Buffer.from('result') }]);
        await files.expireFiles(now + 5000, now);
        await files.expireFiles(now + 10_000, now);
        expect(await files.usageOf('key ada')).toMatchObject({ files: 3, bytes: 10 });
        expect(await files.findBatch('a', 'key ada')).not.toBeNull();
        expect(String(await files.readPiece('in', 0))).toBe('line');
        await files.completeFile('out', { purpose: 'batch_output', lines: 1, expiresAt: now + 300_000 });
        await files.advance('a', { ...running, status: 'ended', endedAt: now, removeAt: now + 300_000 }, []);
        await files.expireFiles(now + 200_000, now);
        expect(await files.findFile('in', 'key ada')).toBeNull();
        expect(await files.findFile('out', 'key ada')).not.toBeNull();
        expect(await files.findBatch('a', 'key ada')).not.toBeNull();
        await files.expireFiles(now + 300_000, now);
        expect([await files.findFile('out', 'key ada'), await files.findBatch('a', 'key ada')]).toEqual([null, null]);
      }));
  });
}
