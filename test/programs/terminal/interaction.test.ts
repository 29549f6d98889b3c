import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { ResendingService } from '../../support/clients/command.js';
import { Screen } from '../../support/clients/screen.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { script, startService, startWithProgram } from '../../support/service/service.js';

const cancelled = 'Cancelled. The conversation is unchanged.';

describeWith('/usr/bin/tmux')('In a terminal', () => {
  it('a chat cancels a turn at Ctrl-C, and ends at Ctrl-D', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['chat']);
    await screen.shows('you>');
    await screen.press('hello', 'Enter');
    await screen.shows('done');
    await screen.press('now wait', 'Enter');
    await screen.shows('begun: A conversation follows'); // a plain command receives the history as one text
    await untilJobs(service, 1, 0);
    await screen.press('C-c');
    await screen.shows(cancelled);
    await recovers(service);
    await screen.press('half a line', 'C-c');
    await screen.shows('To leave, press Ctrl-D or type /exit.');
    await screen.press('Up');
    await screen.shows('you> now wait');
    await screen.press('C-u', 'C-d');
    const lines = await screen.shows('ended with');
    expect(lines.at(-1)).toBe('ended with 0');
    expect(lines.at(-2)).toMatch(/^To resume: prompt-relay chat --conversation \S+$/);
  });

  it('a chat preserves lines that are typed during a turn', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['chat']);
    await screen.shows('you>');
    await screen.press('wait', 'Enter');
    await screen.shows('begun: wait');
    await screen.press('second', 'Enter', 'third');
    await screen.press('C-c');
    await screen.shows('you> third');
    const lines = await screen.lines();
    expect(lines.slice(2)).toEqual([
      'you> wait',
      'begun: wait',
      cancelled,
      'you> second',
      expect.stringMatching(/^begun: (second|.*wait.*second) done$/),
      'you> third',
    ]);
    await screen.press('C-u', '/exit', 'Enter');
    await screen.shows('ended with 0');
  });

  it('a chat resumes after Ctrl-Z, with its line or its turn', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['chat']);
    await screen.shows('you>');
    await screen.press('half a', 'C-z');
    await screen.isContinued(1);
    await screen.press(' line', 'Enter');
    await screen.shows('begun: half a line done');
    await screen.press('wait', 'Enter');
    await screen.shows('begun: A conversation follows');
    await screen.press('C-z');
    await screen.isContinued(2);
    await screen.press('C-c');
    await screen.shows(cancelled);
    await screen.press('last', 'Enter');
    await screen.shows('you> last');
    await screen.press('C-d');
    await screen.shows('ended with 0');
  });

  it('a chat with redirected messages is interrupted by Ctrl-C', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using folder = await temporaryFolder();
    const messages = join(folder.path, 'messages');
    await using screen = await Screen.open(service, ['chat'], { redirected: `2>'${messages}'` });
    await screen.press('wait', 'Enter');
    await screen.shows('begun: wait');
    await screen.press('C-c');
    const promptsAgain = async () => (await readFile(messages, 'utf8')).endsWith(`${cancelled}\nyou> `);
    await until(promptsAgain, 'the next prompt');
    await screen.press('C-c');
    await screen.shows('ended with 130');
    expect(await promptsAgain()).toBe(true);
  });

  it('a chat with piped output still shows its prompt', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['chat'], { redirected: '2>&1 | cat' });
    await screen.shows('you>');
    await screen.press('hello', 'Enter');
    const lines = await screen.shows('done\nyou>');
    expect(lines.slice(2)).toEqual(['you> hello', 'begun: hello done', 'you>']);
    await screen.press('C-d');
    await screen.shows('ended with 0');
  });

  it('a chat reports a lost conversation, and starts another', async () => {
    await using first = await startService();
    await using screen = await Screen.open(first, ['chat', '--model', 'echo']);
    await screen.shows('you>');
    await screen.press('hello', 'Enter');
    await screen.shows('hello\nhello\nyou>');
    await first.stop();
    await using _second = await startService({ env: { MODEL_API_PORT: String(first.port) } });
    await screen.press('again', 'Enter');
    const lost = (await screen.shows('Your next message starts a new one.\nyou>')).at(-3);
    const [, id] = /^The service has no conversation (\S+)\.$/.exec(lost ?? '') ?? [];
    expect(id).toBeDefined();
    await screen.press('once more', 'Enter');
    await screen.shows('once more\nonce more\nyou>');
    await screen.press('C-d');
    const farewell = (await screen.shows('ended with 0')).at(-2);
    expect(farewell).toMatch(/^To resume: prompt-relay chat --conversation \S+$/);
    expect(farewell).not.toContain(id);
  });

  it('a chat that lost its conversation, and did not start another, prints no command to continue', async () => {
    await using service = await startService();
    await using screen = await Screen.open(service, ['chat', '--conversation', 'nonesuch']);
    await screen.shows('you>');
    await screen.press('hello', 'Enter');
    await screen.shows('starts a new one.\nyou>');
    await screen.press('C-d');
    expect((await screen.shows('ended with 0')).at(-2)).toBe('There is no conversation to continue.');
  });

  it('ask prints its answer as it arrives, and ends at Ctrl-C', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['ask', 'please wait']);
    await screen.shows('begun: please wait');
    await screen.press('C-c');
    await recovers(service);
  });

  it('ask marks the point at which a model started over', async () => {
    await using service = await ResendingService.start();
    await using screen = await Screen.open(service, ['ask', 'hello']);
    expect(await screen.shows('ended with')).toEqual([
      'The capital of Fra',
      '(The model started over. Ignore the text above.)',
      'It is Paris.',
      'ended with 0',
    ]);
  });

  it('the live view is redrawn in place, also after the terminal is resized', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await using screen = await Screen.open(service, ['status', '--watch', '--interval', '0.1']);
    const isOnce = (lines: readonly string[]) =>
      lines.filter((line) => line.startsWith('prompt-relay ')).length === 1 && lines[0]?.startsWith('prompt-relay ');
    expect(isOnce(await screen.shows('now '))).toBe(true);
    const leaving = new AbortController();
    const job = service.post('/ask', { prompt: 'wait' }, {}, leaving.signal).catch(() => {});
    expect(isOnce(await screen.shows('1 of 4    █░░░'))).toBe(true);
    leaving.abort();
    await job;
    await screen.resize(50, 8);
    const fits = (lines: readonly string[]) =>
      lines.length <= 8 && lines.some((line) => line.length === 50 && line.endsWith('…'));
    await until(async () => {
      const lines = await screen.lines();
      return isOnce(lines) && fits(lines);
    }, 'the view to fit');
    await screen.resize(90, 24);
    expect(isOnce(await screen.shows('Press Ctrl-C to exit.'))).toBe(true);
    await screen.press('C-c');
    await screen.shows('ended with 0');
  });
});
