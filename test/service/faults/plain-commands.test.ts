import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { recovers } from '../../support/jobs/jobs.js';
import { type Service, startWithProgram } from '../../support/service/service.js';

interface Check {
  readonly status: string;
  readonly trigger: string;
  readonly error?: string;
}

async function checksOf(service: Service): Promise<Check[]> {
  return (await service.get('/health/history')).body.history as Check[];
}

describe('A plain command', () => {
  it('receives a conversation as a transcript, and terminal codes are removed from its answer', async () => {
    const command = `perl -0777 -ne 'print "\\e[1m", $_, "\\e[0m\\n\\n"'`;
    await using service = await startWithProgram(command);
    const { body } = await service.post('/chat', { message: 'one' });
    expect(body.response).toBe('one');
    const next = { message: 'two', conversation_id: body.conversation_id, stream: true };
    const { text } = await service.post('/chat', next);
    const deltas = [...text.matchAll(/^event: delta\ndata: (.*)$/gm)].map(([, data = '']) => JSON.parse(data).text);
    const messages = deltas.join('').matchAll(/^\[turn-\d+ (user|assistant)\]\n(.*)$/gm);
    expect([...messages].map(([, role, said]) => [role, said])).toEqual([
      ['user', 'one'],
      ['assistant', 'one'],
      ['user', 'two'],
    ]);
    expect(deltas.join('')).not.toMatch(/\n$/);
  });

  it('that prints nothing has failed, and after three failures in a row is not ready until it answers', async () => {
    await using folder = await temporaryFolder();
    const answer = join(folder.path, 'answer');
    await using service = await startWithProgram(`sh -c 'cat "$0" || exit 0; exit 3' ${answer}`, {
      MODEL_API_READINESS_INTERVAL_SECONDS: '0',
    });
    const ask = () => service.post('/ask', { prompt: 'words of the client' });
    const empty = { error: 'cli_error', reason: 'empty_answer' };
    for (const _ of [1, 2]) expect((await ask()).body).toMatchObject(empty);
    await recovers(service);
    expect((await service.get('/health')).body.status).toBe('ok');
    await writeFile(answer, 'half an answer');
    expect((await ask()).body).toMatchObject({ error: 'cli_error', reason: 'crashed' });
    const fault = await until(
      async () => (await checksOf(service)).find(({ error }) => error !== undefined),
      'a fault',
    );
    expect(fault).toMatchObject({
      status: 'not_ready',
      trigger: 'failure',
      error: '3 jobs in a row have failed, the last one with crashed: the CLI is ready again when a job is answered',
    });
    expect((await service.get('/health')).body.status).toBe('degraded');
    expect((await ask()).body).toMatchObject({ error: 'cli_error', reason: 'crashed' }); // the job is admitted
  });

  it('is ready again once a job is answered', async () => {
    await using folder = await temporaryFolder();
    const isWell = join(folder.path, 'well');
    await using service = await startWithProgram(`sh -c 'cat; test -e "$0"' ${isWell}`);
    for (const _ of [1, 2, 3]) expect((await service.post('/ask', { prompt: 'a' })).status).toBe(500);
    await until(async () => (await service.get('/health')).body.status === 'degraded', 'the service to be degraded');
    await writeFile(isWell, '');
    expect((await service.post('/ask', { prompt: 'a' })).body).toMatchObject({ success: true, response: 'a' });
    await until(async () => (await service.get('/health')).body.status === 'ok', 'the service to be well');
    expect((await checksOf(service)).map(({ status }) => status)).toEqual(['ready', 'not_ready', 'ready']);
  });
});
