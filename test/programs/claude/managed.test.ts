import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { echoes, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { temporaryFolder } from '../../support/basics/folder.js';

/** Returns a command that mounts a folder over /etc/claude-code, for one program and its children. */
const hidden = (below: string, managed: string) =>
  `mount -t overlay overlay -o 'lowerdir=${below}:/etc' /etc && mount --bind '${managed}' /etc/claude-code`;

function canMount(): boolean {
  try {
    execFileSync(
      'unshare',
      ['--mount', 'sh', '-c', 'd=$(mktemp -d) && mkdir $d/x && mount -t overlay overlay -o lowerdir=$d:/etc /etc'],
      { stdio: 'ignore' },
    );
    return true;
  } catch {
    process.stderr.write('Skipped, because no overlay can be mounted here: the managed settings of claude.\n');
    return false;
  }
}

beforeAll(() => installClaude(), 600_000);

(canMount() ? describe : describe.skip)('The managed settings of a host with the real claude', () => {
  it('are not sent to the model as instructions, are reported, and are a fault if they stop each job', async () => {
    await using api = await startMessagesApi();
    api.behave = echoes;
    await using folder = await temporaryFolder();
    const [below, managed, node] = ['below', 'managed', 'node'].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    await mkdir(join(below, 'claude-code'), { recursive: true });
    await mkdir(managed);
    await writeFile(join(managed, 'CLAUDE.md'), 'Say MANAGED first.');
    await writeFile(join(managed, 'managed-settings.json'), '{"hooks":{"Stop":[]}}');
    const script = `#!/bin/sh\nexec unshare --mount sh -c "${hidden(below, managed)} && exec '${process.execPath}' \\"\\$@\\"" sh "$@"\n`;
    await writeFile(node, script, { mode: 0o755 });
    const env = {
      MODEL_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test', // with an API key, claude never reads CLAUDE.md
      MODEL_API_CLI_ENV: 'ANTHROPIC_BASE_URL',
      MODEL_API_KEY: 'operator',
    };
    await using service = await startWithClaude(api, { node, env });
    const withKey = { 'x-api-key': 'operator' };
    const ask = () => service.post('/ask', { prompt: 'Hello' }, withKey);
    expect((await ask()).status).toBe(200);
    expect(JSON.stringify(api.requests.map(({ body }) => body))).not.toContain('MANAGED');
    const { warning } = await service.log('config_warning', (record) => /claude-code/.test(String(record.warning)));
    expect(warning).toContain('/etc/claude-code/managed-settings.json applies to each job of claude: hooks');
    const health = async () => (await service.post('/health/recheck', '', withKey)).body.readiness;
    for (const [name, text, status] of [
      ['managed-settings.json', '', 200],
      ['managed-settings.json', '{nope', 500],
      ['managed-mcp.json', '{"mcpServers":{"x":{"command":"/bin/true","args":[]}}}', 500],
    ] as const) {
      await writeFile(join(managed, name), text);
      const verdict =
        status === 200 ? { status: 'ready' } : { status: 'not_ready', error: expect.stringContaining('of this host') };
      expect(await health()).toMatchObject({ model_cli: verdict });
      expect((await ask()).status).toBe(status);
      await rm(join(managed, name));
    }
  });
});
