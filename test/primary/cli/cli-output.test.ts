import type { TurnEvent } from '../../../src/primary/cli/adapter.js';
import { CliOutput } from '../../../src/primary/cli/cli-output.js';
import { Watchdog } from '../../../src/primary/cli/watchdog.js';
import type { Inbox } from '../../../src/shared/inbox.js';
import { FakeClock } from '../../support/fake-clock.js';
import { lineDecoder, ScriptedTree, silentObserver } from '../../support/scripted-cli.js';
import { settled } from '../../support/settled.js';

function listen(stallMs = 0) {
  const clock = new FakeClock();
  const tree = new ScriptedTree();
  const output = new CliOutput(tree.child, lineDecoder(), clock, silentObserver);
  const barks: string[] = [];
  const open = () =>
    output.open(new Watchdog({ firstOutputMs: 0, stallMs }, clock, ({ message }) => barks.push(message)));
  return { clock, tree, output, open, barks };
}

function wordOf(event: TurnEvent): string {
  if (event.type === 'text-delta') return event.text;
  return event.type === 'turn-failed' ? `failed: ${event.message}` : event.type;
}

async function read(events: Inbox<TurnEvent>): Promise<string[]> {
  const words: string[] = [];
  for await (const event of events) words.push(wordOf(event));
  return words;
}

async function take(events: Inbox<TurnEvent>, count: number): Promise<string[]> {
  const words: string[] = [];
  while (words.length < count) words.push(wordOf((await events.next()).value as TurnEvent));
  return words;
}

describe('the output of a program', () => {
  it('belongs to the first turn where it came early', async () => {
    const { tree, open } = listen();
    await tree.say('+hello\n');
    await tree.say('+again\n');
    const events = open();
    await tree.say('end\n');
    expect(await read(events)).toEqual(['hello', 'again', 'turn-end']);
  });

  it('belongs to nobody between two turns', async () => {
    const { tree, open, output } = listen();
    const first = open();
    await tree.say('+one\nend\n+afterthought of the very same chunk\n');
    expect(await read(first)).toEqual(['one', 'turn-end']);
    output.close();
    await tree.say('+late\nend\n+half a ');
    const second = open();
    await tree.say('line\n+two\nend\n');
    expect(await read(second)).toEqual(['half a line', 'two', 'turn-end']); // a line counts when it is whole
  });

  it('is told by the turn that is open, up to its last event and no further', async () => {
    const { tree, open } = listen();
    const events = open();
    await tree.say('+one\nfail\nend\n+two\n');
    expect(await read(events)).toEqual(['one', 'failed: it failed']);
  });

  it('is left unread while its reader lags behind, and flows again when it has caught up', async () => {
    const { tree, open } = listen();
    const events = open();
    await tree.say('+1\n+2\n+3\n');
    expect(tree.stdout.isPaused()).toBe(false);
    await tree.say('+4\n');
    expect(tree.stdout.isPaused()).toBe(true);
    await tree.say('+5\nend\n');
    expect(tree.stdout.readableLength).toBeGreaterThan(0);
    expect(await take(events, 1)).toEqual(['1']);
    expect(await read(events)).toEqual(['2', '3', '4', '5', 'turn-end']);
  });

  it('flows on when the turn ends while it is held, so that the program can finish', async () => {
    const { tree, open, output } = listen();
    open();
    await tree.say('+1\n+2\n+3\n+4\n');
    expect(tree.stdout.isPaused()).toBe(true);
    output.close();
    await tree.say('+5\n');
    expect([tree.stdout.isPaused(), tree.stdout.readableLength]).toEqual([false, 0]);
  });

  it('comes in pieces of bounded length, with no character cut in two', async () => {
    const { tree, open } = listen();
    const events = open();
    const text = `${'x'.repeat(16_383)}${'😀'.repeat(10_000)}`;
    await tree.say(`+${text}\nend\n`);
    const words = await read(events);
    expect(words.slice(0, -1).join('')).toBe(text);
    for (const word of words) {
      expect(word.length).toBeLessThanOrEqual(16 * 1024);
      expect(Buffer.from(word).toString()).toBe(word);
    }
  });

  it('is put together where a character comes in two chunks', async () => {
    const { tree, open } = listen();
    const events = open();
    for (const byte of Buffer.from('+ä€😀\nend\n')) await tree.say(Buffer.of(byte));
    expect(await read(events)).toEqual(['ä€😀', 'turn-end']);
  });

  it('is refused where a line never ends', async () => {
    const { tree, open } = listen();
    const events = open();
    await tree.say(`+${'x'.repeat(100_001)}`);
    await expect(read(events)).rejects.toMatchObject({ code: 'cli_error', details: [{ message: 'output_too_large' }] });
  });
});

describe('the exit of a program', () => {
  it('has the last word, with what it said on stderr', async () => {
    const { tree, open, output } = listen();
    const events = open();
    tree.stderr.write('out of luck');
    await tree.say('+half\n');
    await tree.exit(3);
    expect(await read(events)).toEqual(['half', 'failed: exit 3: out of luck']);
    expect(output.isOver).toBe(true);
  });

  it('is waited out by a slow reader: nothing of what was written is lost', async () => {
    const { clock, tree, open } = listen();
    const events = open();
    await tree.say('+1\n+2\n+3\n+4\n');
    await tree.say('+5\n+6\n');
    await tree.exit(0);
    await clock.advance(10_000);
    expect(await read(events)).toEqual(['1', '2', '3', '4', '5', '6', 'turn-end']);
  });

  it('counts after a moment of quiet where somebody else holds stdout', async () => {
    const { clock, tree, open } = listen();
    const words = read(open());
    await tree.say('+done\n');
    await tree.exitAndLeave(0);
    await clock.advance(99);
    await tree.say('+almost\n');
    await clock.advance(99);
    await tree.say('+quite\n');
    let isOver = false;
    void words.then(() => (isOver = true));
    await settled();
    expect(isOver).toBe(false);
    await clock.advance(100);
    expect(await words).toEqual(['done', 'almost', 'quite', 'turn-end']);
    expect(clock.pending).toBe(0);
  });

  it('is told to a turn that comes after it', async () => {
    const { tree, output, open, clock } = listen();
    await tree.exit(1);
    expect(output.isOver).toBe(true);
    await clock.advance(100);
    expect(await read(open())).toEqual(['failed: exit 1: ']);
  });

  it('is a failure to start where setpriv says so', async () => {
    const { tree, open } = listen();
    const events = open();
    tree.stderr.write('setpriv: failed to execute model: Exec format error');
    await settled();
    await tree.exit(126);
    await expect(read(events)).rejects.toMatchObject({ code: 'spawn_error' });
  });
});

describe('the stall limit', () => {
  it('is for the program: while the reader lags behind it does not run', async () => {
    const { clock, tree, open, barks } = listen(50);
    const events = open();
    await tree.say('+1\n+2\n+3\n+4\n');
    await clock.advance(10_000);
    expect(barks).toEqual([]);
    await take(events, 1);
    await clock.advance(50);
    expect(barks).toHaveLength(1);
  });

  it.each([
    ['the last event', (tree: ScriptedTree) => tree.say('end\n')],
    ['a failure', (tree: ScriptedTree) => tree.say('fail\n')],
    ['words after the last event', (tree: ScriptedTree) => tree.say('end\n').then(() => tree.say('cost: 3\n'))],
    ['the exit', (tree: ScriptedTree) => tree.exit(0)],
    ['an exit that leaves stdout open', (tree: ScriptedTree) => tree.exitAndLeave(0)],
    ['a line too long', (tree: ScriptedTree) => tree.say('x'.repeat(100_001))],
  ])('is over with %s, however slowly that is read', async (_, finish) => {
    const { clock, tree, open, barks } = listen(500);
    const events = open();
    await tree.say('+one\n');
    await finish(tree);
    await clock.advance(100);
    await clock.advance(10_000);
    expect(barks).toEqual([]);
    expect(await take(events, 1)).toEqual(['one']);
    await clock.advance(10_000);
    expect(barks).toEqual([]);
  });
});
