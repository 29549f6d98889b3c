import type { DecoderEvent, QuotaWindow } from '../../../../../src/primary/cli/contract/adapter.js';
import { endReasonOf, withoutAsides } from '../../../../../src/primary/cli/contract/observer.js';
import { CliProcess } from '../../../../../src/primary/cli/process/cli-process.js';
import { cancelled, cliError, RelayError, shuttingDown } from '../../../../../src/shared/errors.js';
import {
  lineDecoder,
  noCallbacks,
  noLimits,
  noSecrets,
  ScriptedTree,
  silentObserver,
  TextBook,
  turnOf,
  withDecoder,
} from '../../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

it.each([
  [new RelayError('timeout', 'too slow'), 'timeout'],
  [cancelled('the client has disconnected'), 'cancelled'],
  [shuttingDown(), 'shutting_down'],
  [cliError('quota', 'nothing is left'), 'done'],
])('The end of a process has a cause derived from the reason of the abort: %s', (reason, expected) => {
  expect(endReasonOf(reason)).toBe(expected);
});

const windows = [{ name: 'five_hour', status: 'warning', utilization: 0.9, resetsAt: null }] as const;

/** Returns a decoder that reads a line `quota` as a report, and other lines like `lineDecoder`. */
function reportingDecoder() {
  const lines = lineDecoder();
  return {
    get hasBegun() {
      return lines.hasBegun;
    },
    read: (chunk: string): readonly DecoderEvent[] =>
      chunk === 'quota\n' ? [{ type: 'quota-report', windows }] : [...lines.read(chunk)],
    exit: () => [{ type: 'quota-report', windows } as const, { type: 'text-delta', text: 'last' } as const],
  };
}

function listen() {
  const reports: (readonly QuotaWindow[])[] = [];
  return {
    reports,
    observer: { ...silentObserver, quotaReported: (told: readonly QuotaWindow[]) => void reports.push(told) },
  };
}

describe('A quota report of a program', () => {
  it('goes to the observer, and the turn gets the other events', () => {
    const { reports, observer } = listen();
    const decoder = withoutAsides(reportingDecoder(), { ...observer, reply() {} });
    expect([...decoder.read('quota\n'), decoder.hasBegun]).toEqual([false]);
    expect([...decoder.read('+Hi\n'), decoder.hasBegun]).toEqual([{ type: 'text-delta', text: 'Hi' }, true]);
    expect([...decoder.exit({ code: 0, signal: null, stderr: '' })]).toEqual([{ type: 'text-delta', text: 'last' }]);
    expect(reports).toEqual([windows, windows]);
  });

  it('may arrive between two turns, because it is no part of an answer', async () => {
    const { reports, observer } = listen();
    const tree = new ScriptedTree();
    const programVersion = withDecoder(reportingDecoder());
    const process = new CliProcess(
      {
        programVersion,
        limits: noLimits,
        clock: new FakeClock(),
        observer,
        redactor: noSecrets,
        callbacks: noCallbacks,
      },
      'busy',
    );
    await process.startProgram(Promise.resolve(tree));
    const answer = process.turn(turnOf('hello'), new TextBook(), new AbortController().signal);
    await tree.say('end\n');
    await answer;
    expect(process.keepFor({ id: 'a', messageCount: 2 })).toBe(true);
    await tree.say('quota\n');
    expect([process.state.name, tree.ends, reports]).toEqual(['idle', [], [windows]]);
  });
});
