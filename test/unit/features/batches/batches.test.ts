import { Batches } from '../../../../src/features/batches/batches.js';
import { StoredFiles } from '../../../../src/features/files/stored-files.js';
import type { BatchApi } from '../../../../src/features/stores/contract/files.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { settled } from '../../../support/basics/settled.js';
import { BatchHarness } from '../../../support/stores/batch-harness.js';
import { batchOf } from '../../../support/stores/file-store-contract.js';

const dayMs = 86_400_000;
const caller = { groups: [], refusesFallback: false };

async function harnessWith(maxLines = 100, maxJobs = 1000) {
  const harness = new BatchHarness();
  const { store, clock } = harness;
  const settings = {
    MODEL_API_FILES: 'memory',
    MODEL_API_FILES_MB: 1_000_000,
    MODEL_API_MAX_FILES: 1000,
    MODEL_API_FILES_TTL_SECONDS: 30 * dayMs,
  } as const;
  const files = new StoredFiles(store, settings, clock);
  const parts = { ...harness.parts, files };
  const batches = new Batches(parts, { maxLines, maxJobs, ttlMs: 30 * dayMs });
  const add = async (lines: readonly string[], client: ClientText = 'key ada', api: BatchApi = 'chat') => {
    const purpose = api === 'messages' ? 'message_batch' : 'batch';
    const id = await files.createFile({ client, purpose, name: 'a', mediaType: '' });
    await files.appendPiece(id, client, Buffer.from(lines.join('\n')));
    await files.completeFile({ id, client, purpose, lines: lines.length, ttlMs: null });
    return batches.createBatch({ client, caller, api, inputFile: id, metadata: null });
  };
  const round = async () => {
    await clock.advance(1000);
    harness.end();
    for (const client of ['key ada', 'key bob'] as const) batches.jobEnded(client);
    await settled();
  };
  return { harness, batches, files, add, round };
}

describe('Batches', () => {
  it('are refused if their lines can be no background jobs', async () => {
    const { add } = await harnessWith(100, 0);
    await expect(add(['a1'])).rejects.toThrow('MODEL_API_MAX_JOBS is 0');
  });

  it('are refused without room for a short result of each line, also of the batches that have not ended', async () => {
    const { add, files } = await harnessWith(10_000);
    await expect(add(Array(1999).fill(''))).rejects.toMatchObject({ code: 'payload_too_large' });
    await add(Array(1000).fill(''));
    await expect(add(Array(1000).fill(''))).rejects.toMatchObject({ code: 'payload_too_large' });
    await add(['a'], 'key bob');
    expect(
      (await files.listFiles({ client: 'key ada', after: null, limit: 9, isAscending: true }, null)).files.length,
    ).toBe(3);
  });

  it('run one after the other for each client, and beside those of other clients', async () => {
    const { harness, batches, add, round } = await harnessWith();
    batches.startFeeding();
    const ids = [await add(['a1', 'a2']), await add(['b1'], 'key ada/bob'), await add(['c1'], 'key bob')].map(
      ({ id }) => id,
    );
    await settled();
    expect(harness.submitted.toSorted()).toEqual(['a1', 'a2', 'c1']);
    expect(batches.running).toBe(2);
    for (let count = 0; count < 6; count++) await round();
    expect(harness.submitted).toContain('b1');
    const owners = ['key ada', 'key ada/bob', 'key bob'] as const;
    const views = await Promise.all(ids.map((id, index) => batches.get(id, owners[index] as ClientText)));
    expect(views.map(({ status, counts }) => [status, counts.succeeded])).toEqual([
      ['ended', 2],
      ['ended', 1],
      ['ended', 1],
    ]);
    await expect(batches.get(ids[0] as string, 'key bob')).rejects.toMatchObject({ code: 'not_found' });
    expect(harness.failures).toEqual([]);
  });

  it('that are created at the same time cannot exceed the limit together', async () => {
    const { add } = await harnessWith(5);
    const created = await Promise.allSettled(Array.from({ length: 8 }, () => add(['a', 'b'])));
    expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  });

  it('that wait are cancelled at once', async () => {
    const { batches, add, harness, round } = await harnessWith();
    batches.startFeeding();
    await add(['a1']);
    const { id } = await add(['b1', 'b2']);
    await settled();
    expect((await batches.cancel(id, 'key ada')).cancelAt).not.toBeNull();
    await round();
    await round();
    expect(await batches.get(id, 'key ada')).toMatchObject({ status: 'ended', counts: { canceled: 2 } });
    expect(harness.submitted).toEqual(['a1']);
  });

  it('go on with the stored progress after a failure of the store', async () => {
    const { batches, add, harness, round } = await harnessWith();
    batches.startFeeding();
    const { id } = await add(['a1', 'a2']);
    const advance = harness.store.advance.bind(harness.store);
    let failures = 2;
    harness.store.advance = async (...args) => {
      if (failures-- > 0) throw new Error('the disk is full');
      return advance(...args);
    };
    for (let count = 0; count < 8; count++) await round();
    expect(await batches.get(id, 'key ada')).toMatchObject({ status: 'ended', counts: { succeeded: 2 } });
    expect(harness.failures).toEqual([new Error('the disk is full'), new Error('the disk is full')]);
  });

  it('report a defect of the check for batches to run, and check again', async () => {
    const { batches, add, harness, round } = await harnessWith();
    const leaseBatches = harness.store.leaseBatches.bind(harness.store);
    const defect = new TypeError('a defect');
    harness.store.leaseBatches = () => Promise.reject(defect);
    batches.startFeeding();
    await settled();
    expect(harness.failures).toEqual([defect]);
    harness.store.leaseBatches = leaseBatches;
    const { id } = await add(['a1']);
    for (let count = 0; count < 3; count++) await round();
    expect(await batches.get(id, 'key ada')).toMatchObject({ status: 'ended', counts: { succeeded: 1 } });
  });

  it('send no lines before the start and after the stop', async () => {
    const { batches, add, harness, round } = await harnessWith();
    await add(['a1']);
    await round();
    expect(harness.submitted).toEqual([]);
    batches.startFeeding();
    await settled();
    batches.stopFeeding();
    await add(['b1'], 'key bob');
    await round();
    expect(harness.submitted).toEqual(['a1']);
  });

  it.each([
    ['if the store fails for too long', () => Promise.reject(new Error('the store is unavailable')), 20_000],
    ['if another host has it', async () => [], 1000],
  ])('have no job accepted for a line that this host may no longer send: %s', async (_, leaseBatches, afterMs) => {
    const { batches, add, harness } = await harnessWith();
    const jobIds: string[] = [];
    let accept = () => {};
    harness.submitLine = async ({ jobId }) => {
      jobIds.push(jobId);
      await new Promise<void>((resolve) => {
        accept = resolve;
      });
      return { refused: null };
    };
    batches.startFeeding();
    await add(['a1']);
    await settled();
    const [jobId = ''] = jobIds;
    expect(() => batches.checkSending(jobId)).not.toThrow();
    expect(() => batches.checkSending('another')).toThrow(/another host/);
    harness.store.leaseBatches = leaseBatches;
    await harness.clock.advance(afterMs);
    await settled();
    expect(() => batches.checkSending(jobId)).toThrow(/another host/);
    accept();
    await settled();
    expect(() => batches.checkSending(jobId)).toThrow(/another host/);
  });

  it('are refused for a file that is empty, too long, of another purpose or of another client', async () => {
    const { batches, add, files } = await harnessWith(3);
    await add(['1', '2']);
    await expect(add(['3', '4'])).rejects.toThrow(/MODEL_API_MAX_BATCH_LINES/);
    await expect(add(['3', '4'], 'key ada/bob')).rejects.toThrow(/MODEL_API_MAX_BATCH_LINES/);
    await expect(add([])).rejects.toThrow(/at least one line/);
    const id = await files.createFile({ client: 'key ada', purpose: 'user_data', name: 'a', mediaType: '' });
    await files.completeFile({ id, client: 'key ada', purpose: 'user_data', lines: 0, ttlMs: null });
    const order = { caller, api: 'chat', inputFile: id, metadata: null } as const;
    await expect(batches.createBatch({ ...order, client: 'key ada' })).rejects.toThrow(/purpose batch/);
    await expect(batches.createBatch({ ...order, client: 'key bob' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('make room for new ones: the oldest that have ended, beyond a thousand', async () => {
    const { batches, harness, files } = await harnessWith();
    const { store } = harness;
    const results = await files.createFile({ client: 'key ada', purpose: 'message_batch', name: 'a', mediaType: '' });
    const ended = { ...batchOf('a').progress, status: 'ended', endedAt: 1 } as const;
    for (let count = 0; count < 1000; count++) {
      const kept =
        count === 0 ? ({ api: 'messages', inputFile: 'x', outputFile: results, errorFile: null } as const) : {};
      await store.addBatch(batchOf(`old ${count}`, { progress: ended, removeAt: Number.MAX_SAFE_INTEGER, ...kept }));
    }
    const input = await files.createFile({ client: 'key ada', purpose: 'batch', name: 'a', mediaType: '' });
    await files.completeFile({ id: input, client: 'key ada', purpose: 'batch', lines: 1, ttlMs: null });
    await batches.createBatch({ client: 'key ada', caller, api: 'chat', inputFile: input, metadata: null });
    await expect(batches.get('old 0', 'key ada')).rejects.toMatchObject({ code: 'not_found' });
    expect(await store.findFile(results, 'key ada')).toBeNull();
    expect((await batches.get('old 1', 'key ada')).status).toBe('ended');
    const page = await batches.listBatches({ client: 'key ada', after: null, limit: 1000, isAscending: true }, [
      'chat',
    ]);
    expect([page.batches.length, page.hasMore]).toEqual([100, true]);
  });

  it('leave no file behind if there is no room for both of their results', async () => {
    const { batches, files, harness } = await harnessWith();
    const ids: string[] = [];
    for (let count = 0; count < 999; count++)
      ids.push(await files.createFile({ client: 'key ada', purpose: 'batch', name: 'a', mediaType: '' }));
    const inputFile = ids[0] ?? '';
    await files.completeFile({ id: inputFile, client: 'key ada', purpose: 'batch', lines: 1, ttlMs: null });
    const created = batches.createBatch({ client: 'key ada', caller, api: 'chat', inputFile, metadata: null });
    await expect(created).rejects.toThrow(/MODEL_API_MAX_FILES/);
    expect((await harness.store.usageOf('key ada')).files).toBe(999);
  });

  it('end their runs before the store closes', async () => {
    const { batches, add, harness } = await harnessWith();
    batches.startFeeding();
    await add(['a1']);
    const advance = harness.store.advance.bind(harness.store);
    let isStored = false;
    harness.store.advance = async (...args) => {
      await settled(20);
      isStored = true;
      return advance(...args);
    };
    await settled();
    batches.stopFeeding();
    expect(isStored).toBe(false);
    await batches.untilIdle();
    expect([isStored, batches.running]).toEqual([true, 0]);
  });

  it('are removed with their results, when they have ended', async () => {
    const { batches, add, round, files, harness } = await harnessWith();
    batches.startFeeding();
    const { id } = await add(['one'], 'key ada', 'messages');
    await expect(batches.removeBatch(id, 'key ada')).rejects.toThrow(/has not ended/);
    for (let count = 0; count < 4; count++) await round();
    const { outputFile } = await batches.get(id, 'key ada');
    expect((await files.findFile(String(outputFile), 'key ada')).lines).toBe(1);
    await batches.removeBatch(id, 'key ada');
    expect(await harness.store.usageOf('key ada')).toMatchObject({ files: 0, bytes: 0 });
    const page = { client: 'key ada' as const, after: null, limit: 5, isAscending: false };
    expect(await batches.listBatches(page, ['messages'])).toEqual({ batches: [], hasMore: false });
  });
});
