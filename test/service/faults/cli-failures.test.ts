import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { recovers } from '../../support/jobs/jobs.js';
import { memoryOf } from '../../support/processes/processes.js';
import { namedProgram, type Service, script, startWithProgram } from '../../support/service/service.js';

const largePrompt = 'x'.repeat(1_000_000);
const oneSlot = { MODEL_API_MAX_CONCURRENT: '1' };

describe('A program that cannot be started', () => {
  it.each([
    [
      'is missing',
      async () => {},
      'the model CLI model is not installed on this host (MODEL_API_CLI, MODEL_API_CLI_COMMAND)',
    ],
    [
      'is a folder',
      (path: string) => mkdir(path),
      'the model CLI model is not installed on this host (MODEL_API_CLI, MODEL_API_CLI_COMMAND)',
    ],
    [
      'may not be executed',
      (path: string) => writeFile(path, '#!/bin/sh\n', { mode: 0o644 }),
      'the model CLI model may not be executed by the service (MODEL_API_CLI_COMMAND)',
    ],
    [
      'has no interpreter',
      (path: string) => writeFile(path, '#!/nonexistent\n', { mode: 0o755 }),
      "the model CLI model can't be started: its interpreter nonexistent is missing",
    ],
  ])('causes spawn_error if it %s, until a working program replaces it', async (_, prepare, message) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'model');
    await prepare(path);
    await using service = await startWithProgram(path, oneSlot);
    for (const prompt of ['hello', largePrompt]) {
      const { status, body } = await service.post('/ask', { prompt });
      expect(status).toBe(500);
      expect(body).toMatchObject({ error: 'spawn_error', message });
      const record = await service.log('cli_failed', ({ request_id }) => request_id === body.request_id);
      expect(record).toMatchObject({ level: 'warn', code: 'spawn_error' });
      await recovers(service);
    }

    await rm(path, { recursive: true, force: true });
    await writeFile(path, '#!/bin/sh\nexec cat\n', { mode: 0o755 });
    const { body } = await service.post('/ask', { prompt: 'are you there?' });
    expect(body.response).toBe('are you there?');
  });
});

let service: Service;
beforeAll(async () => {
  service = await startWithProgram(namedProgram, { ...oneSlot, MODEL_API_DEFAULT_MODEL: 'splits-utf8.pl' });
});
afterAll(async () => {
  await recovers(service);
  await service.stop();
});

describe('A program that fails', () => {
  it.each([
    ['exits with a code', 'exits-early.pl:3', 'the model CLI exited with code 3', 'warming up\nthe disk is full'],
    ['is killed', 'dies-by-signal.pl:KILL', 'the model CLI was ended by SIGKILL', undefined],
    ['crashes', 'dies-by-signal.pl:SEGV', 'the model CLI was ended by SIGSEGV', undefined],
    ['is no program', 'nowhere.js', 'the model CLI exited with code 127', expect.stringContaining('nowhere.js')],
  ])('causes a cli_error with the cause, and its stderr is logged: it %s', async (_, model, message, stderr) => {
    for (const prompt of ['hello', largePrompt]) {
      const { status, body } = await service.post('/ask', { prompt, model });
      expect(status).toBe(500);
      expect(body).toMatchObject({ error: 'cli_error', message, reason: 'crashed' });
      const record = await service.log('cli_failed', ({ request_id }) => request_id === body.request_id);
      expect(record).toMatchObject({ level: 'warn', code: 'cli_error', reason: 'crashed' });
      expect(record.stderr).toEqual(stderr);
      await recovers(service);
    }
  });

  it('has its stderr sent to the caller if the operator enables it', async () => {
    const command = script('exits-early.pl', '3');
    await using service = await startWithProgram(command, { ...oneSlot, MODEL_API_EXPOSE_STDERR: 'true' });
    const { body } = await service.post('/ask', { prompt: 'hello' });
    expect(body.message).toBe('the model CLI exited with code 3: warming up\nthe disk is full');
  });

  it('causes a cli_error when it floods its stdout, and the flood is not stored', async () => {
    const maxGrowth = 150 * 1024 * 1024;
    const before = await memoryOf(service.pid);
    for (let round = 0; round < 3; round++) {
      const { status, body } = await service.post('/ask', { prompt: 'hello', model: 'floods-stdout.pl' });
      expect(status).toBe(500);
      expect(body).toMatchObject({ error: 'cli_error', reason: 'output_too_large' });
      await recovers(service);
    }
    const { peakBytes } = await memoryOf(service.pid);
    expect(peakBytes - before.bytes).toBeLessThan(maxGrowth);
  });
});

describe('A program that behaves oddly but answers', () => {
  it.each(['closes-stdin.pl', 'never-reads.pl'])('may leave a large prompt unread: %s', async (model) => {
    const { status, body } = await service.post('/ask', { prompt: largePrompt, model });
    expect(status).toBe(200);
    expect(body.response).toBe('answered without reading');
    await recovers(service);
  });

  it('may split characters between writes', async () => {
    const prompt = 'grüße, 你好, 🚀 – 👩‍👩‍👧';
    const { body } = await service.post('/ask', { prompt, model: 'splits-utf8.pl' });
    expect(body.response).toBe(prompt);
  });

  it('may print invalid UTF-8, which becomes replacement characters', async () => {
    const { status, body } = await service.post('/ask', { prompt: 'hello', model: 'prints-garbage.pl' });
    expect(status).toBe(200);
    const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(everyByte).replace('\u001b', '');
    expect(body.response).toBe(text.repeat(64));
    await recovers(service);
  });
});
