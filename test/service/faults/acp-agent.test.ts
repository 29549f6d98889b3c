import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { fixture, type Service, startService } from '../../support/service/service.js';

describe('An agent that requests capabilities it does not have', () => {
  it('is refused each time, with log records and a metric, and its answer still arrives', async () => {
    await using home = await temporaryFolder();
    await mkdir(join(home.path, '.agent'));
    await writeFile(join(home.path, '.agent', 'login'), 'logged in');
    await using service = await startService({
      env: {
        MODEL_API_CLI: 'acp',
        MODEL_API_CLI_COMMAND: fixture('acp-agent.js', '--model', '{model}'),
        MODEL_API_CLI_HOME_FILES: '.agent/login,.agent/missing',
        MODEL_API_STANDBY: '1',
        HOME: home.path,
      },
    });
    const { status, body } = await service.post('/ask', { prompt: 'Try everything', model: 'big' });
    expect([status, body.response]).toEqual([200, 'Try everything cancelled -32601 -32601 logged in --model big']);
    expect([body.model, body.usage]).toEqual(['big', null]);
    for (const request of ['permission', 'files', 'terminal']) {
      await service.log('cli_request_refused', (record) => record.request === request);
      expect((await service.get('/metrics')).text).toMatch(
        new RegExp(`^model_api_cli_requests_refused_total\\{.*request="${request}".*\\} 1$`, 'm'),
      );
    }
    expect((await service.get('/version')).body.model_cli).toEqual({ adapter: 'acp', version: '7.0.0' });
  });
});

describe('An agent whose tools the relay switches off', () => {
  const startOffering = (...tools: readonly string[]) =>
    startService({
      env: { MODEL_API_CLI: 'qwen', MODEL_API_CLI_COMMAND: fixture('offering-agent.js', ...tools) },
    });

  it('is not ready if a trial shows that it offers the model others, and gets no prompt', async () => {
    await using service = await startOffering('read_file', 'run');
    const error = 'version 7.0.0 of qwen cannot be used safely: it offers the model its own tools: read_file, run';
    expect(await service.log('readiness_checked')).toMatchObject({ status: 'not_ready', error });
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error, body.message]).toEqual([500, 'cli_error', error]);
  });

  it('is ready if a trial shows no tools', async () => {
    await using service = await startOffering();
    expect(await service.log('readiness_checked')).toMatchObject({ status: 'ready' });
    expect((await service.get('/version')).body.model_cli).toEqual({ adapter: 'qwen', version: '7.0.0' });
  });
});

it('The thoughts of an agent are shown to a client that sets an effort, and to no other client', async () => {
  await using service = await startService({
    env: { MODEL_API_CLI: 'acp', MODEL_API_CLI_COMMAND: fixture('acp-agent.js') },
  });
  const ask = async (more: object) => {
    const messages = [{ role: 'user', content: 'Think' }];
    const { body } = await service.post('/v1/chat/completions', { model: 'default', messages, ...more });
    return (body.choices as { message: object }[])[0]?.message;
  };
  const said = { role: 'assistant', content: 'Think', refusal: null };
  expect(await ask({ reasoning_effort: 'low' })).toEqual({ ...said, reasoning_content: 'Let me think.' });
  expect(await ask({})).toEqual(said);
});

function start(habits: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const command = fixture('particular-agent.js', ...habits);
  return startService({ env: { MODEL_API_CLI: 'acp', MODEL_API_CLI_COMMAND: command, ...env } });
}

const answerOf = async (service: Service) => (await service.post('/ask', { prompt: 'Hello' })).body.response;

describe('An agent that prints a greeting', () => {
  it.each([
    [['greets'], 'mode auto, login nobody'],
    [['greets', 'modes'], 'mode read-only, login nobody'],
  ])('still gets a process on standby, and no answer contains the greeting: %j', async (habits, answer) => {
    await using service = await start(habits, { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '1' });
    await service.log('cli_text_ignored');
    const pids = await until(async () => {
      const found = await service.jobProcesses();
      return found.length === 1 ? found : undefined;
    }, 'the process that waits');
    const { body } = await service.post('/chat', { message: 'Hello' });
    expect(body.response).toBe(answer);
    expect(await service.jobProcesses()).toEqual(expect.arrayContaining(pids)); // the conversation uses it now
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(1);
    await until(async () => (await service.jobProcesses()).length === 2, 'another one that waits');
    expect(service.logs.filter(({ event }) => event === 'cli_text_ignored')).toHaveLength(1);
  });

  it('answers a job that waited for its start, without the greeting', async () => {
    await using service = await start(['greets', 'modes'], { MODEL_API_STANDBY: '0' });
    for (let n = 0; n < 3; n++) expect(await answerOf(service)).toBe('mode read-only, login nobody');
  });
});

describe('An agent that requires a login', () => {
  it('logs in with the configured environment variable', async () => {
    const given = { MODEL_API_CLI_ENV: 'PARTICULAR_KEY', PARTICULAR_KEY: 'ada' };
    await using service = await start(['login', 'modes'], given);
    expect(await service.log('readiness_checked')).toMatchObject({ status: 'ready' });
    expect(await answerOf(service)).toBe('mode read-only, login ada');
  });

  it('is not ready without the variable, and reports at once how to log in', async () => {
    await using service = await start(['login']);
    const ways = 'ways to log in: Log in with a browser; By key (MODEL_API_CLI_ENV=PARTICULAR_KEY)';
    const message = `the model CLI is not logged in: Authentication required; ${ways}`;
    expect(await service.log('readiness_checked')).toMatchObject({ status: 'not_ready', error: message });
    const { body } = await service.post('/ask', { prompt: 'Hello' });
    expect(body).toMatchObject({ reason: 'auth', message: expect.stringContaining(ways) });
  });
});

describe('An agent that opens no session', () => {
  it.each(['refuses', 'mute'])('is not ready at once, and reports the reason: it %s', async (habit) => {
    await using service = await start([habit]);
    const { status, error, check_ms: ms } = await service.log('readiness_checked');
    expect([status, error]).toEqual(['not_ready', 'the model CLI reports: no disk']);
    expect(ms).toBeLessThan(8000); // a check times out after 20 s
    const { body } = await service.post('/ask', { prompt: 'Hello' });
    expect(body.message).toBe('the model CLI reports: no disk');
  });
});
