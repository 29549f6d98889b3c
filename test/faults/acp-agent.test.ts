import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folder.js';
import { fixture, startService } from '../support/service.js';

describe('An agent that asks for what it is not given', () => {
  it('is refused each time, and the log and the metrics tell of it; its answer comes all the same', async () => {
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
