import { metric } from '../support/exposition.js';
import { untilJobs } from '../support/jobs.js';
import { killIfAlive, programsOf } from '../support/processes.js';
import { type Service, script, startService } from '../support/service.js';
import { until } from '../support/until.js';

const kills = 15;

function startBoth(more: Readonly<Record<string, string>> = {}): Promise<Service> {
  const clis = `main=demo,fragile=command:${script('forever.pl')}`;
  return startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, ...more } });
}

describe('Two CLIs in one service', () => {
  it('do not feel it when the other one is killed again and again', async () => {
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

  it('have one queue, in which a limit of one of them holds back nobody else', async () => {
    await using service = await startBoth({ MODEL_API_CLI_LIMITS: 'fragile:1', MODEL_API_MAX_CONCURRENT: '3' });
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

  it('go on without the one that is not there: the service is degraded, and says which', async () => {
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
      message: 'model: must be one of main/eliza, main/echo',
    });
  });

  it('are given no flag as a model, and list none that nobody may name', async () => {
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
