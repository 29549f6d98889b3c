import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { commands } from '../../../src/command/command-line.js';
import { programHelp } from '../../../src/command/render/help.js';
import type { FileBody, ReasonBody } from '../../../src/shared/api/health.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { setupReport } from '../../support/agents/setup-report.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { Screen } from '../../support/clients/screen.js';
import { root } from '../../support/documents/sources.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { startService, startWithProgram } from '../../support/service/service.js';

/** Starts a stand-in for a busy service. Its responses are constant, so that a screen can be compared with a file. */
async function stubStatus(isTroubled = false): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((req, res) => {
    const body = bodies(isTroubled)[req.url ?? ''] ?? { error: 'not_found', message: 'no such path', request_id: 'x' };
    res.writeHead('error' in Object(body) ? 404 : 200, { 'Content-Type': 'application/json', Connection: 'close' });
    res.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

function bodies(isTroubled: boolean): Readonly<Record<string, unknown>> {
  const check = { checked_at: ago(1230), duration_ms: 410, trigger: 'interval', adapter: 'claude', version: '2.1.328' };
  const ready = { ...check, status: 'ready' };
  const version = { name: 'prompt-relay', version: '0.1.0', commit: null, node: 'v20.20.2', termination: 'cgroup' };
  const slots = { active_requests: 2, queued_requests: 3, max_concurrent: 4, max_queue: 100 };
  const observability = {
    started_at: ago(86_400),
    uptime_seconds: 86_400 + 3 * 3600,
    model_runtime: {
      ...slots,
      rejected_total: 0,
      queue_timeouts_total: 0,
      active_ages_ms: [78_700, 68_300],
      ...(isTroubled && { queued_requests: 100, queue_full_since: ago(84), refused_last_5_minutes: 1234 }),
    },
    cli_processes: { standby: 1, renewed: 0, live: 2, tools: 0, busy: 2, stopping: 0 },
    workers: [1, 2].map((id) => ({ id, pid: 16_468 + id, state: 'ready', restarts: 0 })),
  };
  const job = { client: 'user ada', operation: 'ask', model: 'opus', started_at: ago(1230) };
  return {
    '/health': {
      status: isTroubled ? 'degraded' : 'ok',
      reasons: isTroubled ? reasonsNow() : [],
      strict_mode: false,
      readiness: { model_cli: ready },
      store: { kind: 'memory', up: true },
      ...(isTroubled && { files: filesNow() }),
      observability,
    },
    '/version': { ...version, model_cli: { adapter: 'claude', version: '2.1.328' }, uptime_seconds: 97_200 },
    '/health/history': { observability, history: [{ ...check, status: 'not_ready', error: 'x' }, ready, ready] },
    '/setup': setupReport,
    '/status': {
      slots: { max: 4, running: [7, 12].map((number) => ({ ...job, job: number, id: `${number}-f3Kx82Qa` })) },
      queue: {
        ...{ max: 100, waiting: 3, full_since: null, refused_last_5_minutes: 0 },
        clients: [{ client: 'key bob', waiting: 3, oldest_since: ago(1230), reason: 'slot' }],
      },
      background_jobs: { max: 1000, waiting: 12, running: 1 },
      totals: {
        ...{ requests: 1300, jobs: 1234, failed_jobs: 0, cancelled_jobs: 0, refused: 0, output_tokens: 0 },
        ...{ first_deltas: 0, first_delta_seconds: 0 },
      },
    },
  };
}

/** Returns reasons. No job is started for ten and a half minutes. */
function reasonsNow(): readonly ReasonBody[] {
  return [
    { part: 'cli', name: 'codex', message: 'the model CLI codex is not ready: the model CLI is not logged in' },
    {
      part: 'quota',
      name: 'claude',
      message: 'the account of the model CLI claude has used up its quota',
      until: ago(-630),
    },
    {
      part: 'store',
      name: 'redis',
      message: 'the store (redis) is down: conversations and background jobs are refused',
    },
  ];
}

function filesNow(): readonly FileBody[] {
  return [
    { name: 'keys_file', modified_at: ago(95), faults: 2 },
    { name: 'accounts_file', modified_at: ago(40_000), faults: 0 },
  ];
}

const widths = [60, 80, 120];
const rows = 60;

/** Replaces figures that differ between runs by others of equal length, so that line breaks stay. */
function masked(lines: readonly string[]): string {
  const text = lines.map((line) => line.trimEnd()).join('\n');
  return `${text
    .replace(/127\.0\.0\.1:\d+/g, (address) => address.replace(/\d+$/, '#####'))
    .replace(/conversation [\w-]{22,}/g, 'conversation ########################')
    .replace(/\b\d+( min)? \d+ s\b|\b\d+ s\b/g, (time) => time.replace(/\d/g, '#'))}\n`;
}

/** Compares the screen with its golden file; with UPDATE_GOLDEN set, writes that file. */
async function expectGolden(name: string, lines: readonly string[]): Promise<void> {
  const path = join(root, 'test', 'programs', 'terminal', 'golden', `${name}.txt`);
  if (process.env.UPDATE_GOLDEN !== undefined) await writeFile(path, masked(lines));
  expect(masked(lines)).toBe(await readFile(path, 'utf8'));
}

describeWith('/usr/bin/tmux').each(widths)('A terminal of %s columns', (columns) => {
  const size = { columns, rows };
  const nowhere = { port: 5 };

  it('wraps the help to its width', async () => {
    await using screen = await Screen.open(nowhere, ['--help'], { ...size, rows: 100 });
    const lines = programHelp(commands, Math.min(columns, 100)).split('\n');
    expect((await screen.shows('ended with 0')).slice(0, lines.length)).toEqual(lines);
  });

  it('shows an answer, and no wait indicator afterwards', async () => {
    await using service = await startService();
    await using screen = await Screen.open(service, ['ask', 'Hello, my name is Ada'], size);
    await expectGolden(`ask-${columns}`, await screen.shows('ended with 0'));
  });

  it('shows the queue position and the seconds while it waits', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { MODEL_API_MAX_CONCURRENT: '1' });
    const first = service.post('/ask', { prompt: 'first' });
    await untilJobs(service, 1, 0);
    await using screen = await Screen.open(service, ['ask', 'second'], size);
    const waiting = await screen.shows('place 1 in the queue, 1 s');
    await expectGolden(`waiting-${columns}`, waiting);
    await gate.open();
    await first;
    expect(await screen.shows('ended with 0')).toEqual(['second', 'ended with 0']);
  });

  it('shows the progress of a batch, and its result', async () => {
    await using gate = await createAnswerGate();
    await using folder = await temporaryFolder();
    const [prompts, answers] = [join(folder.path, 'p.jsonl'), join(folder.path, 'a.jsonl')];
    await writeFile(prompts, '{"prompt":"one"}\n{"prompt":"two"}\n{"id":3,"prompt":"three"}\n');
    await writeFile(answers, '{"id":3,"line":3,"response":"x"}\n{"id":');
    await using service = await startWithProgram(gate.command, { MODEL_API_MAX_CONCURRENT: '1' });
    const args = ['batch', '-o', answers, '--concurrency', '2', prompts];
    await using screen = await Screen.open(service, args, size);
    await untilJobs(service, 1, 0); // the batch keeps its other line
    const running = await screen.shows('1 of 3');
    await expectGolden(`batch-${columns}`, running);
    await gate.open();
    const ended = await screen.shows('ended with 0');
    expect(ended.join('\n')).toMatch(/2 answered, 0 failed, 1 done before in /);
    expect(ended.join('\n')).not.toContain('█');
  });

  it('shows a chat: its model, its commands, a mistyped one, history', async () => {
    await using service = await startService();
    await using screen = await Screen.open(service, ['chat', '-m', 'echo'], size);
    const says = async (line: string, answer: string) => {
      await screen.press(line, 'Enter');
      await screen.shows(answer);
    };
    await screen.shows('you>');
    await says('/help', 'begins with a slash');
    await says('Hello', '\nHello\nyou>');
    await says('/hepl', '/hepl is not a command');
    await says('/model', 'The service lists');
    await says('/model eliza', 'Model: eliza.');
    await says('/history', 'model>');
    await says('/new', 'Started a new conversation.');
    await says('/history', 'no messages yet');
    await screen.press('C-d');
    await expectGolden(`chat-${columns}`, await screen.shows('ended with 0'));
  });

  it.each(['status', 'jobs'])('shows a busy service: %s', async (name) => {
    await using service = await stubStatus();
    await using screen = await Screen.open(service, [name], size);
    await expectGolden(`${name}-${columns}`, await screen.shows('ended with 0'));
  });

  it('shows an unhealthy service, with the reasons', async () => {
    await using service = await stubStatus(true);
    await using screen = await Screen.open(service, ['status'], size);
    await expectGolden(`troubled-${columns}`, await screen.shows('ended with 1'));
  });

  it('reports that no service answers', async () => {
    await using screen = await Screen.open(nowhere, ['status'], size);
    await expectGolden(`nobody-${columns}`, await screen.shows('ended with 69'));
  });
});
