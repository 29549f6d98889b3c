import { parseCommandLine } from '../../../src/command/command-line.js';

function parsed(line: string) {
  const invocation = parseCommandLine(line.split(' '));
  if (invocation.type !== 'run') return [invocation.type];
  const { command, args } = invocation;
  return [command.name, args.value('url') ?? null, args.value('key') ?? null, ...args.positionals];
}

describe('A command line', () => {
  it.each([
    ['ask --url host:1 --key k hello', ['ask', 'host:1', 'k', 'hello']],
    ['--url host:1 ask hello', ['ask', 'host:1', null, 'hello']],
    ['--url=host:1 --key k ask hello', ['ask', 'host:1', 'k', 'hello']],
    ['--key k --url host:1 status --json', ['status', 'host:1', 'k']],
    ['--url host:1 ask --url host:2 hello', ['ask', 'host:2', null, 'hello']],
  ])('may name the service before or after the command: %s', (line, expected) => {
    expect(parsed(line)).toEqual(expected);
  });

  it('shows the help wherever the service is named', () => {
    expect(parsed('--url host:1 --help')).toEqual(['help']);
    expect(parsed('--url host:1 ask --help')).toEqual(['help']);
  });

  it.each(['--url host:1', '--url', '--key k serve', '--ulr host:1 ask'])('rejects unknown arguments: %s', (line) => {
    expect(() => parsed(line)).toThrow(/unknown option|argument missing/);
  });
});
