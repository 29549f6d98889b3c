import { CallbackServer } from '../../../../../src/features/acp/callback-server.js';
import {
  ConsultedProgram,
  consultation,
  consultPlan,
  openTrial,
} from '../../../../../src/primary/cli/process/program.js';
import { scriptedCli } from '../../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { settled } from '../../../../support/basics/settled.js';

async function consult(input = '', isEnough?: (stdout: string) => boolean | string) {
  const clock = new FakeClock();
  const programVersion = new ConsultedProgram(isEnough);
  const { tree, process } = await scriptedCli(clock, { programVersion });
  const answer = consultation(process, programVersion, input, clock);
  await settled();
  return { clock, tree, process, answer };
}

describe('A consultation', () => {
  it('gives the program its whole stdin, and returns its output and exit code', async () => {
    const { clock, tree, process, answer } = await consult('{"type":"models"}\n');
    expect([tree.receivedInput, tree.stdin.writableEnded]).toEqual(['{"type":"models"}\n', true]);
    await tree.say('one ');
    await tree.say('two\n');
    await tree.exit(3);
    expect(await answer).toEqual({ code: 3, stdout: 'one two\n' });
    expect([tree.ends, process.state.name, clock.pending]).toEqual([['done'], 'gone', 0]);
  });

  it('has no exit code if the program was ended by a signal', async () => {
    const { tree, answer } = await consult();
    await tree.exit(null, 'SIGKILL');
    expect(await answer).toEqual({ code: null, stdout: '' });
  });

  it('fails as a start error if no answer arrives within 10 s', async () => {
    const { clock, tree, process, answer } = await consult();
    const failure = expect(answer).rejects.toMatchObject({
      code: 'spawn_error',
      message: 'the model CLI did not answer a query about itself in time',
    });
    await tree.say('I am thinking');
    await clock.advance(9999);
    expect(tree.ends).toEqual([]);
    await clock.advance(1);
    await failure;
    expect([process.state.name, clock.pending]).toEqual(['gone', 0]);
  });

  it('ends with the first request to the callback of a trial, and then refuses further ones', async () => {
    const clock = new FakeClock();
    const programVersion = new ConsultedProgram(() => false);
    const callbacks = new CallbackServer(clock);
    const trial = await openTrial(callbacks, programVersion, ({ url, headers }) => ({ url, ...headers }));
    const { tree, process } = await scriptedCli(clock, { programVersion });
    const answer = consultation(process, programVersion, '', clock);
    const { url = '', Authorization = '' } = trial.env;
    const post = () => fetch(url, { method: 'POST', headers: { Authorization }, body: '{"tools":[]}' });
    const request = post();
    expect(await answer).toEqual({ code: null, stdout: '', request: '{"tools":[]}' });
    expect([tree.ends, process.state.name]).toEqual([['done'], 'gone']);
    expect((await request).status).toBe(200);
    trial[Symbol.dispose]();
    expect((await post()).status).toBe(401);
    await callbacks.closePort();
  });

  it('has 20 s if stdin remains open until the output suffices', () => {
    expect(new ConsultedProgram(() => false).limitMs).toBe(20_000);
  });

  it('writes the next input until the output suffices', async () => {
    const lines = (stdout: string) => stdout.split('\n').length - 1;
    const isEnough = (stdout: string) =>
      lines(stdout) === 3 ? true : stdout.endsWith('?\n') && `line ${lines(stdout)}\n`;
    const { tree, answer } = await consult('begin\n', isEnough);
    await tree.say('what?\n');
    await tree.say('well\n');
    expect([tree.receivedInput, tree.stdin.writableEnded]).toEqual(['begin\nline 1\n', false]);
    await tree.say('and?\n');
    expect(await answer).toEqual({ code: null, stdout: 'what?\nwell\nand?\n' });
    expect(tree.receivedInput).toBe('begin\nline 1\n');
  });

  it('ends after a megabyte of output that never suffices, because each piece causes a search of the whole', async () => {
    const { tree, answer } = await consult('', () => false);
    await tree.say('x'.repeat(1024 * 1024));
    expect(tree.ends).toEqual([]);
    await tree.say('x');
    expect((await answer).stdout).toHaveLength(1024 * 1024 + 1);
    expect(tree.ends).toEqual(['done']);
  });

  it('fails as a start error if the program cannot be executed', async () => {
    const { tree, answer } = await consult();
    const failure = expect(answer).rejects.toMatchObject({ code: 'spawn_error' });
    tree.stderr.write('prompt-relay-sh: cannot enter its cgroup\n');
    await settled();
    await tree.exit(126);
    await failure;
  });

  it('stores four megabytes of the output, and discards the rest', async () => {
    const { tree, answer } = await consult();
    for (let count = 0; count < 40; count++) await tree.say('x'.repeat(200_000));
    await tree.exit(0);
    const { stdout } = await answer;
    expect(stdout.length).toBeGreaterThanOrEqual(4 * 1024 * 1024);
    expect(stdout.length).toBeLessThan(4 * 1024 * 1024 + 400_000);
  });

  it('is interrupted by a shutdown', async () => {
    const { process, answer } = await consult();
    const failure = expect(answer).rejects.toMatchObject({ code: 'shutting_down' });
    await process.end('shutting_down');
    await failure;
  });
});

it('The launch for a consultation uses the arguments, with a private file if one is needed', () => {
  expect(consultPlan(['--version'], undefined, '/private/1')).toEqual({ args: ['--version'], files: [] });
  expect(consultPlan(['-c', 'list="{file}"'], 'a list', '/private/1')).toEqual({
    args: ['-c', 'list="/private/1"'],
    files: [{ path: '/private/1', text: 'a list' }],
  });
});
