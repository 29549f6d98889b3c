import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { freePort } from '../../support/basics/free-port.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { commandProgram } from '../../support/clients/command.js';
import { Screen } from '../../support/clients/screen.js';
import { isAlive } from '../../support/processes/processes.js';
import { startService } from '../../support/service/service.js';

const run = promisify(execFile);
const demo = { MODEL_API_CLI: 'demo', MODEL_API_WORKERS: '1', MODEL_API_STANDBY: '0', MODEL_API_LIVE_SESSIONS: '0' };

async function serveEnv(): Promise<typeof demo & { readonly MODEL_API_PORT: string }> {
  return { ...demo, MODEL_API_PORT: String(await freePort()) };
}

/** Returns the pid of the service that listens on this port. */
async function pidOf(port: string): Promise<number> {
  const { stdout } = await run('ss', ['-ltnpH', `sport = :${port}`]);
  return Number(/pid=(\d+)/.exec(stdout)?.[1]);
}

function get(port: string, path: string, headers = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, path, headers }, (answer) =>
      answer.resume().once('end', () => resolve(answer.statusCode)),
    );
    sent.once('error', reject).end();
  });
}

describeWith('/usr/bin/tmux')('A service started in a terminal', () => {
  it('prints a banner of four lines, whose example command works', async () => {
    const env = await serveEnv();
    await using screen = await Screen.run(['serve'], { env, columns: 140 });
    const lines = await screen.shows('ask it');
    const banner = lines.slice(lines.findIndex((line) => line.includes('http://'))).filter((line) => line !== '');
    expect(banner[0]).toMatch(new RegExp(`^  prompt-relay \\S+ +http://127.0.0.1:${env.MODEL_API_PORT}$`));
    expect(banner).toContainEqual(expect.stringMatching(/^ {2}model CLI +demo 1\.0\.0, ready$/));
    const ask = lines.find((line) => line.includes('ask it')) ?? '';
    const { stdout } = await run('bash', ['-c', ask.replace('ask it', '')]);
    expect(JSON.parse(stdout)).toMatchObject({ success: true });
    await screen.shows('POST  /ask');
    expect(await screen.colouredText()).toContain('\u001b[32m200');
    await screen.press('C-c');
    await screen.shows('ended with 0');
  });

  it('prints one line per request, without control characters', async () => {
    const env = await serveEnv();
    await using screen = await Screen.run(['serve'], { env: { ...env, NO_COLOR: '1' }, columns: 120 });
    await screen.shows('ask it');
    expect(await get(env.MODEL_API_PORT, '/%1b[2Jx')).toBe(404);
    const lines = await screen.shows('/%1b[2Jx');
    expect(lines.at(-1)).toMatch(/^\d\d:\d\d:\d\d {2}GET {3}\/%1b\[2Jx +404 +\d+ ms .* not_found$/);
    expect(await get(env.MODEL_API_PORT, '/\u009b2Jy')).toBe(400); // Node's parser rejects such bytes
    await screen.shows('400');
    expect((await screen.lines()).join('\n')).toContain('/%1b[2Jx');
    expect(await screen.colouredText()).not.toContain('\u001b[3');
  });

  it('logs JSON if configured', async () => {
    const env = { ...(await serveEnv()), MODEL_API_LOG_FORMAT: 'json' };
    await using screen = await Screen.run(['serve'], { env, columns: 200 });
    const lines = await screen.shows('service_ready');
    expect(lines.join('\n')).not.toContain('ask it');
    expect(lines[0]).toMatch(/^\{"level":"/);
  });

  it('prints each fault once, with the suggested variable, and exits with 78', async () => {
    await using screen = await Screen.run(['serve'], { env: { MODEL_API_PORT: 'x', MODEL_API_PROT: '5052' } });
    expect(await screen.shows('ended with')).toEqual([
      "prompt-relay can't start:",
      '  MODEL_API_PORT: must be a whole number from 0 to 65535',
      '  Warning: MODEL_API_PROT is not a variable of prompt-relay: did you mean MODEL_API_PORT?',
      'ended with 78',
    ]);
  });

  it('names in one sentence the program that uses its port, and exits with 69', async () => {
    await using first = await startService();
    const env = { ...demo, MODEL_API_PORT: String(first.port) };
    await using screen = await Screen.run(['serve'], { env, columns: 300 });
    const [sentence, ...rest] = await screen.shows('ended with');
    expect(sentence).toContain(
      `port ${first.port} is in use by another prompt-relay (process ${first.pid}): end it, or`,
    );
    expect(rest).toEqual(['ended with 69']);
  });

  it('ends when its terminal is closed', async () => {
    const env = await serveEnv();
    await using screen = await Screen.run(['serve'], { env, columns: 140 });
    await screen.shows('ask it');
    const pid = await pidOf(env.MODEL_API_PORT);
    expect(isAlive(pid)).toBe(true);
    await screen.close();
    await until(() => !isAlive(pid), 'the service to end');
  });
});

describe('A service started by npm', () => {
  it('ends when its starter was killed, even if the shell between them survives', async () => {
    const env = { ...(await serveEnv()), PATH: process.env.PATH ?? '', npm_command: 'exec' };
    const inner = `'${process.execPath}' '${commandProgram}' serve >/dev/null; true`;
    const starter = spawn('perl', ['-e', 'system("sh", "-c", $ARGV[0])', inner], { env, stdio: 'ignore' });
    await until(async () => (await get(env.MODEL_API_PORT, '/version').catch(() => 0)) === 200, 'the service');
    const pid = await pidOf(env.MODEL_API_PORT);
    starter.kill('SIGKILL');
    await once(starter, 'exit');
    await until(() => !isAlive(pid), 'the service to end');
  });
});
