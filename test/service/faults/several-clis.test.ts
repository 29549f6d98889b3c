import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { killIfAlive, programsOf } from '../../support/processes/processes.js';
import { fixture, type Service, script, startService } from '../../support/service/service.js';

const kills = 15;

function startBoth(more: Readonly<Record<string, string>> = {}, fragile = 'fragile'): Promise<Service> {
  const clis = `main=demo,${fragile}=command:${script('forever.pl')}`;
  return startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, ...more } });
}

describe('Two CLIs in one service', () => {
  it('do not affect each other when one is killed again and again', async () => {
    await using service = await startBoth({ MODEL_API_LIVE_SESSIONS: '2' });
    let conversationId: string | undefined;
    for (let kill = 0; kill < kills; kill++) {
      const fragile = service.post('/ask', { prompt: 'hello', model: 'fragile' });
      const pid = await until(async () => {
        const { running } = (await service.get('/status')).body.slots as { running: unknown[] };
        return running.length > 0 ? (await programsOf(service, 'forever.pl'))[0] : undefined;
      }, 'the program to run');
      const asked = service.post('/ask', { prompt: `round ${kill}`, model: 'main/echo' });
      const said = service.post('/chat', { message: `turn ${kill}`, model: 'echo', conversation_id: conversationId });
      killIfAlive(pid);
      const [lost, answered, turn] = await Promise.all([fragile, asked, said]);
      expect([lost.status, lost.body.error]).toEqual([500, 'cli_error']);
      expect([answered.status, answered.body.model, answered.body.response]).toEqual([
        200,
        'main/echo',
        `round ${kill}`,
      ]);
      expect([turn.status, turn.body.response]).toEqual([200, `turn ${kill}`]);
      conversationId = turn.body.conversation_id as string;
    }
    expect(await metric(service, 'cli_exits_total{cli="fragile",class="signal"}')).toBeGreaterThanOrEqual(kills);
    expect(await metric(service, 'cli_exits_total{cli="main",class="nonzero"}')).toBe(0);
    expect(await metric(service, 'live_session_total{cli="main",result="hit"}')).toBe(kills - 1);
  });

  it('share one queue, in which a limit of one of them delays no job of the other', async () => {
    await using service = await startBoth({ MODEL_API_MAX_CONCURRENT: '3' }, 'fragile*1');
    const controller = new AbortController();
    const stuck = ['one', 'two', 'three'].map((prompt) =>
      service.post('/ask', { prompt, model: 'fragile' }, {}, controller.signal).catch(() => null),
    );
    await untilJobs(service, 1, 2);
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => service.post('/ask', { prompt: 'hi', model: 'main/echo' })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await untilJobs(service, 1, 2);
    controller.abort();
    await Promise.all(stuck);
    await untilJobs(service, 0, 0);
  });

  it('continue without a missing one: the service is degraded, and names it', async () => {
    const env = {
      MODEL_API_CLI: 'auto',
      MODEL_API_CLIS: 'main=demo,gone=command:/nowhere/model',
      MODEL_API_STRICT_HEALTH: '1',
    };
    await using service = await startService({ env });
    const health = await until(async () => {
      const { status, body } = await service.get('/health');
      const { model_clis: clis } = body.readiness as { model_clis: { cli: string; status: string }[] };
      const words = clis.map(({ cli, status: word }) => `${cli} ${word}`);
      return words.some((word) => word.endsWith('unknown')) ? undefined : { status, word: body.status, words };
    }, 'both checks');
    expect(health).toEqual({ status: 200, word: 'degraded', words: ['main ready', 'gone not_ready'] });
    const [good, bad] = await Promise.all(
      ['main', 'gone'].map((model) => service.post('/ask', { prompt: 'hello', model })),
    );
    expect([good?.status, bad?.status, bad?.body.error]).toEqual([200, 500, 'spawn_error']);
    const { models } = (await service.get('/models')).body as { models: { id: string; default: boolean }[] };
    expect(models.map(({ id, default: isDefault }) => [id, isDefault])).toEqual([
      ['main/eliza', true],
      ['main/echo', false],
      ['gone/model', false],
    ]);
    const { model_clis: versions } = (await service.get('/version')).body as { model_clis: { cli: string }[] };
    expect(versions.map(({ cli }) => cli)).toEqual(['main', 'gone']);
    expect((await service.post('/ask', { prompt: 'x', model: 'main/gpt' })).body).toMatchObject({
      error: 'validation_error',
      message: 'model: must be one of main/eliza, main/echo, gone/model',
    });
  });

  it('list the models of both to a client that names an unknown model', async () => {
    await using folder = await temporaryFolder();
    const [account, path] = [join(folder.path, 'account'), join(folder.path, 'keys')];
    await writeFile(account, 'ok');
    const line = (name: string, rest: string) =>
      `${name}:sha256:${digestOf(`the-key-of-${name}-in-this-test`)}:${rest}\n`;
    await writeFile(path, line('all', 'scopes=ask+chat') + line('few', 'scopes=ask+chat,models=agent/big+main/echo'), {
      mode: 0o600,
    });
    const clis = `main=demo,agent=acp:${fixture('complaining-agent.js', account)}`;
    const env = { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, MODEL_API_KEYS_FILE: path };
    await using service = await startService({ env });
    const ask = (key: string, model: string, endpoint = '/ask', body: object = { prompt: 'hello' }) =>
      service.post(endpoint, { ...body, model }, { 'x-api-key': `the-key-of-${key}-in-this-test` });
    const both = 'main/eliza, main/echo, agent/big, agent/small';
    const refused = await ask('all', 'gpt');
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: 'model', message: `must be one of ${both}` }],
    ]);
    expect((await ask('all', 'gpt', '/chat', { message: 'hello' })).body.message).toBe(`model: must be one of ${both}`);
    const failed = await ask('all', 'agent/gpt');
    expect([failed.status, failed.body.reason]).toEqual([500, 'model_unknown']);
    expect(failed.body.message).toBe(`the model CLI reports: model not found: gpt; this service has ${both}`);
    const few = 'agent/big, main/echo';
    expect((await ask('few', 'agent/gpt')).body.message).toBe(
      `model: must be one of ${few} (the models of its API key)`,
    );
    for (const model of ['gpt', 'agent/gpt']) {
      const hello = { messages: [{ role: 'user', content: 'hello' }] };
      const { status, body } = await ask('all', model, '/v1/chat/completions', hello);
      expect([status, body.error]).toEqual([404, expect.objectContaining({ code: 'model_not_found' })]);
      expect((body.error as { message: string }).message).toContain(both);
      const anthropic = await ask('all', model, '/v1/messages', { ...hello, max_tokens: 9 });
      expect([anthropic.status, (anthropic.body.error as { message: string }).message]).toEqual([
        404,
        expect.stringContaining(both),
      ]);
    }
    const later = await service.post(
      '/ask',
      { prompt: 'hello', model: 'gpt' },
      {
        'x-api-key': 'the-key-of-all-in-this-test',
        prefer: 'respond-async',
      },
    );
    expect([later.status, later.body.message]).toEqual([400, `model: must be one of ${both}`]);
  });

  it('accept no flag as a model name, and list only models that clients may name', async () => {
    const clis = `main=demo,local=command:sh -c 'cat >/dev/null; echo "$0"' {model}`;
    await using service = await startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis } });
    const ask = async (model: string) => (await service.post('/ask', { prompt: 'hello', model })).body;
    expect(await ask('local/llama3')).toMatchObject({ response: 'llama3', model: 'local/llama3' });
    for (const model of ['local/--verbose', 'local/-x', 'local//etc/hostname', 'local']) {
      expect(await ask(model)).toMatchObject({ error: 'validation_error' });
    }
    const { models } = (await service.get('/models')).body as { models: { id: string }[] };
    expect(models.map(({ id }) => id)).toEqual(['main/eliza', 'main/echo']);
  });
});
