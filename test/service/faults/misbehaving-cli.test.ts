import { type Aftermath, aftermathOf, untilHealthy } from '../../support/jobs/aftermath.js';
import { type Service, script, startService, startWithProgram } from '../../support/service/service.js';

type Exit = 'ok' | 'nonzero' | 'signal';
type Case = readonly [way: string, expected: Aftermath];

const maxOutputBytes = 1_000_000;
const settings = {
  MODEL_API_MAX_CONCURRENT: '1',
  MODEL_API_TIMEOUT: '1',
  MODEL_API_KILL_GRACE_MS: '100',
  MODEL_API_MAX_OUTPUT_BYTES: String(maxOutputBytes),
};
/** Larger than the buffer of a pipe, so that the service is still writing when the program misbehaves. */
const prompt = 'x'.repeat(900_000);

function answered(response: string, exit: Exit = 'ok'): Aftermath {
  return { status: 200, response, outcome: 'ok', counted: { 'ask ok': 1, [`exit ${exit}`]: 1 } };
}

function failed(reason: string, message: string, exit: Exit): Aftermath {
  const counted = { 'ask cli_error': 1, [`exit ${exit}`]: 1 };
  return { status: 500, error: 'cli_error', reason, message, outcome: 'cli_error', counted };
}

function exited(code: number, exit: Exit = 'nonzero'): Aftermath {
  return failed('crashed', `the model CLI exited with code ${code}`, exit);
}

const late: Aftermath = {
  status: 504,
  error: 'timeout',
  message: 'the model took longer than 1000 ms (MODEL_API_TIMEOUT)',
  outcome: 'timeout',
  counted: { 'ask timeout': 1, 'exit signal': 1 },
};
const tooLong = failed(
  'output_too_large',
  `the answer is longer than ${maxOutputBytes} bytes (MODEL_API_MAX_OUTPUT_BYTES)`,
  'signal',
);
const half = 'half of an ans';
const nothing = failed('empty_answer', 'the model CLI exited with 0 without an answer', 'ok');

const exits: Case[] = [
  ['exit:0', nothing],
  ['exit-read:0', nothing],
  ['exit-half:0', answered(half)],
  ...[1, 3, 126, 127, 255].map((code): Case => [`exit:${code}`, exited(code)]),
  ...['exit-read', 'exit-half', 'closes-stdout-exit', 'closes-all'].map((way): Case => [`${way}:3`, exited(3)]),
];

const signals = 'TERM INT HUP QUIT KILL SEGV ABRT PIPE ALRM USR1 USR2 BUS FPE ILL SYS XCPU'.split(' ');
const deaths: Case[] = ['signal', 'signal-half'].flatMap((way) =>
  signals.map((name): Case => [`${way}:${name}`, failed('crashed', `the model CLI was ended by SIG${name}`, 'signal')]),
);

const hangs: Case[] = [
  ...['hang', 'hang-read', 'hang-half', 'hang-answered'].map((way): Case => [way, late]),
  ...['ignores-signals', 'stops-itself', 'closes-stdout', 'endless-stderr'].map((way): Case => [way, late]),
];

const outputs: Case[] = [
  ['one-line', tooLong],
  ['endless-stdout', tooLong],
  ['much-stderr', answered('after it')],
  ['nul', answered('a\0b')],
  ['bad-utf8', answered('a\ufffd\ufffd(\ufffd')],
  ['half-character', answered('a\ufffd')],
  ['byte-order-mark', answered('\ufeffa')],
  ['ansi', answered('a')],
  ['newlines', nothing],
  ['closes-stdin', answered('unread')],
  ['closes-stdout-exit:0', nothing],
  ['closes-all:0', nothing],
];

const strays: Case[] = [
  ['leads-a-session', nothing], // the program has exited; its child is killed
  ['child-writes-late', answered('parent')],
  ['child-fails', answered('parent')],
  ['removes-folder', answered('without a folder')],
  ['locks-folder', answered('locked')],
  ['fills-folder', answered('filled')],
];

/** The process would continue to run after such an answer, so it is killed. */
const spoken = (text: string) => answered(text, 'signal');
const lines: Case[] = [
  ['whole', spoken('well')],
  ['no-newline', answered('well')],
  ['half-line', exited(0, 'ok')],
  ['no-end', exited(0, 'ok')],
  ['no-text', spoken('')],
  ['two-ends', spoken('well')],
  ['end-then-error', spoken('well')],
  ['error-then-end', failed('overloaded', 'enough', 'signal')],
  ['unknown-reason', failed('other', 'no', 'signal')],
  ['garbage', spoken('well')],
  ['wrong-types', spoken('well')],
  ['negative-usage', late],
  ['proto', spoken('a')],
  ['deep', spoken('well')],
  ['escaped-nul', spoken('a\0b\ud800')],
  ['long-line', failed('output_too_large', 'a line is longer than 1048576 characters', 'signal')],
  ['carriage-returns', spoken('well')],
];

describe('A model CLI that is a plain command and misbehaves', () => {
  let service: Service;
  beforeAll(async () => {
    const env = { ...settings, MODEL_API_DEFAULT_MODEL: 'echo' };
    service = await startWithProgram(script('misbehaves.pl', '{model}'), env);
  });
  afterAll(() => service.stop());

  it.each([...exits, ...deaths, ...hangs, ...outputs, ...strays])(
    'fails its own job alone: %s',
    async (way, expected) => {
      service.logs.length = 0; // of a first try
      expect(await aftermathOf(service, { prompt, model: way })).toEqual(expected);
      await service.post('/ask', { prompt: 'sound' }); // after three failures, only an answer proves that the CLI works
      await untilHealthy(service);
      const isFailure = expected.outcome === 'cli_error';
      expect(service.logs.splice(0).filter(({ event }) => event === 'cli_failed')).toHaveLength(isFailure ? 1 : 0);
    },
  );

  it('blocks no slot, and the next job is served', async () => {
    expect(await aftermathOf(service, { prompt: 'sound' })).toEqual(answered('sound'));
  });
});

describe('A model CLI with a line protocol that misbehaves', () => {
  let service: Service;
  beforeAll(async () => {
    const cli = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('misbehaves.pl') };
    service = await startService({ env: { ...settings, ...cli } });
  });
  afterAll(() => service.stop());

  it.each(lines)('fails its job only: %s', async (way, expected) => {
    expect(await aftermathOf(service, { prompt: way })).toEqual(expected);
  });
});
