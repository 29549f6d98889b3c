import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commands } from '../../src/command/commands.js';
import { createGate } from '../support/gate.js';
import { untilJobs } from '../support/jobs.js';
import { describeWith } from '../support/needs.js';
import { Screen } from '../support/screen.js';
import { startService, startWithProgram } from '../support/service.js';
import { root } from '../support/sources.js';
import { stubStatus } from '../support/stub-status.js';

const widths = [60, 80, 120];
const rows = 60;

/** Figures that differ from run to run, each by one of the same length, so that lines break where they do. */
function masked(lines: readonly string[]): string {
  const text = lines.map((line) => line.trimEnd()).join('\n');
  return `${text
    .replace(/127\.0\.0\.1:\d+/g, (address) => address.replace(/\d+$/, '#####'))
    .replace(/conversation [\w-]{22,}/g, 'conversation ########################')
    .replace(/\b\d+( min)? \d+ s\b|\b\d+ s\b/g, (time) => time.replace(/\d/g, '#'))}\n`;
}

/** Holds the screen against its golden file; with UPDATE_GOLDEN set, writes that file. */
async function expectGolden(name: string, lines: readonly string[]): Promise<void> {
  const path = join(root, 'test', 'terminal', 'golden', `${name}.txt`);
  if (process.env.UPDATE_GOLDEN !== undefined) await writeFile(path, masked(lines));
  expect(masked(lines)).toBe(await readFile(path, 'utf8'));
}

describeWith('/usr/bin/tmux').each(widths)('a terminal of %s columns', (columns) => {
  const size = { columns, rows };
  const nowhere = { port: 5 };

  it.each([['program', ['--help']], ...commands.map(({ name }) => [name, [name, '--help']] as const)] as const)(
    'shows the help: %s',
    async (name, args) => {
      await using screen = await Screen.open(nowhere, args, { ...size, rows: 80 });
      const lines = await screen.shows('ended with 0');
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
      await expectGolden(`help-${name}-${columns}`, lines);
    },
  );

  it('shows an answer, and nothing of the wait', async () => {
    await using service = await startService();
    await using screen = await Screen.open(service, ['ask', 'Hello, my name is Ada'], size);
    await expectGolden(`ask-${columns}`, await screen.shows('ended with 0'));
  });

  it('shows the place in the queue and the seconds while it waits', async () => {
    await using gate = await createGate();
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

  it('shows a chat: its model, its words, a mistyped one, history', async () => {
    await using service = await startService();
    await using screen = await Screen.open(service, ['chat', '-m', 'echo'], size);
    const says = async (line: string, answer: string) => {
      await screen.press(line, 'Enter');
      await screen.shows(answer);
    };
    await screen.shows('you>');
    await says('/help', 'begins with a slash');
    await says('Hello', '\nHello\nyou>');
    await says('/hepl', 'There is no /hepl');
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

  it('shows a service that is not well, and why', async () => {
    await using service = await stubStatus(true);
    await using screen = await Screen.open(service, ['status'], size);
    await expectGolden(`troubled-${columns}`, await screen.shows('ended with 1'));
  });

  it('says that no service answers', async () => {
    await using screen = await Screen.open(nowhere, ['status'], size);
    await expectGolden(`nobody-${columns}`, await screen.shows('ended with 69'));
  });
});
